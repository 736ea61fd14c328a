"""The whole stack on this machine: ministack as AWS, the real template.yaml deployed to it, the seed documents in it.

Everything is read from template.yaml and from the stack it became; nothing about routes, events or settings is said
a second time here. `python -m tools.local_cloud --help` lists what it does.
"""
