"""The event queue on Amazon SQS."""

from typing import TYPE_CHECKING

from knowledge.adapters.aws_errors import aws_errors

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SqsEventQueue:
    """EventQueue over one standard queue."""

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        """`queue_url` as SQS gives it."""
        self._client = client
        self._queue_url = queue_url

    def put_again(self, body: str) -> None:
        """See EventQueue; one call."""
        with aws_errors("SQS"):
            self._client.send_message(QueueUrl=self._queue_url, MessageBody=body)
