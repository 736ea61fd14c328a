"""Bucket, table and queues: nothing public, nothing lost, nothing left to chance."""

import json
import re
from typing import Any

import pytest

from knowledge.ports import MAX_CHANGES

Json = dict[str, Any]


@pytest.fixture
def bucket(resources: Json) -> Json:
    properties: Json = resources["Bucket"]["Properties"]
    return properties


@pytest.fixture
def table(resources: Json) -> Json:
    properties: Json = resources["Table"]["Properties"]
    return properties


@pytest.fixture
def queue(resources: Json) -> Json:
    properties: Json = resources["EventQueue"]["Properties"]
    return properties


@pytest.mark.parametrize("store", ["Bucket", "Table"])
def test_deleting_the_stack_keeps_the_data(resources: Json, store: str) -> None:
    assert resources[store]["DeletionPolicy"] == "Retain"
    assert resources[store]["UpdateReplacePolicy"] == "Retain"


def test_the_bucket_is_versioned_and_encrypted(bucket: Json) -> None:
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}


def test_the_bucket_cannot_be_made_public(bucket: Json) -> None:
    block = bucket["PublicAccessBlockConfiguration"]
    assert set(block) == {"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"}
    assert all(block.values())


def test_the_bucket_is_reached_over_tls_only(resources: Json) -> None:
    [statement] = resources["BucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_old_versions_go_after_90_days_and_derived_ones_after_one(bucket: Json) -> None:
    rules = bucket["LifecycleConfiguration"]["Rules"]
    days = {
        rule.get("Prefix", ""): rule["NoncurrentVersionExpiration"]["NoncurrentDays"]
        for rule in rules
        if "NoncurrentVersionExpiration" in rule
    }
    assert days == {"": 90, "_index/": 1}
    assert [r["AbortIncompleteMultipartUpload"] for r in rules if "AbortIncompleteMultipartUpload" in r] == [
        {"DaysAfterInitiation": 7}
    ]


def test_every_change_under_the_prefix_and_nothing_else_is_followed(bucket: Json) -> None:
    notifications = bucket["NotificationConfiguration"]["QueueConfigurations"]
    assert {n["Event"] for n in notifications} == {
        "s3:ObjectCreated:*",
        "s3:ObjectRemoved:*",
        "s3:LifecycleExpiration:*",
        "s3:ObjectRestore:Completed",
    }
    for notification in notifications:
        assert notification["Queue"] == {"Fn::GetAtt": ["EventQueue", "Arn"]}
        assert notification["Filter"] == {
            "S3Key": {"Rules": [{"Name": "prefix", "Value": {"Ref": "KnowledgeBasePath"}}]}
        }


def test_only_buckets_of_this_account_can_send_and_may_before_the_bucket_is_made(resources: Json) -> None:
    [statement] = resources["EventQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "s3.amazonaws.com"}
    assert statement["Action"] == "sqs:SendMessage"
    assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert resources["Bucket"]["DependsOn"] == "EventQueuePolicy"


@pytest.mark.parametrize("name", ["EventQueue", "DeadLetterQueue"])
def test_queues_are_encrypted(resources: Json, name: str) -> None:
    assert resources[name]["Properties"]["SqsManagedSseEnabled"] is True


def test_a_message_stays_hidden_for_six_times_as_long_as_the_indexer_may_take(queue: Json, functions: Json) -> None:
    assert queue["VisibilityTimeout"] >= 6 * functions["indexer"]["Timeout"]


def test_a_message_that_keeps_failing_ends_in_the_dead_letter_queue(queue: Json, functions: Json) -> None:
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}
    told = functions["indexer"]["Environment"]["Variables"]["MAX_RECEIVE_COUNT"]
    assert str(queue["RedrivePolicy"]["maxReceiveCount"]) == told == "8"


def test_somebody_is_told_of_a_dead_letter(resources: Json) -> None:
    alarm = resources["DeadLetterAlarm"]["Properties"]
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": {"Fn::GetAtt": ["DeadLetterQueue", "QueueName"]}}]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)


def test_the_indexer_takes_batches_and_gives_back_only_what_failed(resources: Json) -> None:
    [source] = [r["Properties"] for r in resources.values() if r["Type"] == "AWS::Lambda::EventSourceMapping"]
    assert source["EventSourceArn"] == {"Fn::GetAtt": ["EventQueue", "Arn"]}
    assert source["BatchSize"] == MAX_CHANGES
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert 1 <= source["MaximumBatchingWindowInSeconds"] <= 5


def test_the_table_is_billed_by_use_restorable_encrypted_and_forgets_what_expires(table: Json) -> None:
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["SSESpecification"] == {"SSEEnabled": True}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}


def test_the_table_has_its_keys_and_indexes(table: Json) -> None:
    keys = {None: table["KeySchema"]} | {i["IndexName"]: i["KeySchema"] for i in table["GlobalSecondaryIndexes"]}
    assert {name: [key["AttributeName"] for key in schema] for name, schema in keys.items()} == {
        None: ["pk", "sk"],
        "listing": ["listing_pk", "file_path"],
        "by_status": ["status_pk", "file_path"],
    }
    assert {i["Projection"]["ProjectionType"] for i in table["GlobalSecondaryIndexes"]} == {"ALL"}


@pytest.mark.parametrize("path", ["knowledge_base/", "a/b/"])
def test_the_prefix_may_be_nested(template: Json, path: str) -> None:
    assert re.fullmatch(template["Parameters"]["KnowledgeBasePath"]["AllowedPattern"], path)


@pytest.mark.parametrize("path", ["", "/", "/a/", "a", "_index/", "_index/a/", "a//"])
def test_a_prefix_that_would_miss_or_loop_is_refused(template: Json, path: str) -> None:
    assert not re.fullmatch(template["Parameters"]["KnowledgeBasePath"]["AllowedPattern"], path)


def test_no_resource_has_a_fixed_name_on_which_two_stacks_would_collide(resources: Json) -> None:
    names = {
        "AWS::S3::Bucket": "BucketName",
        "AWS::DynamoDB::Table": "TableName",
        "AWS::SQS::Queue": "QueueName",
        "AWS::Lambda::Function": "FunctionName",
        "AWS::Lambda::LayerVersion": "LayerName",
        "AWS::Logs::LogGroup": "LogGroupName",
        "AWS::IAM::Role": "RoleName",
    }
    given = {
        logical_id: json.dumps(resource["Properties"].get(names[resource["Type"]]))
        for logical_id, resource in resources.items()
        if resource["Type"] in names
    }
    assert {logical_id: name for logical_id, name in given.items() if "StackName" not in name and name != "null"} == {}
