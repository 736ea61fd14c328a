"""The document registry in DynamoDB. Knows the table and its indexes; how items look is in `dynamodb_shapes`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from knowledge.adapters import page_cursor
from knowledge.adapters.aws_errors import aws_errors
from knowledge.adapters.dynamodb_calls import DYNAMODB, TableUser, batch_get, query_all
from knowledge.adapters.dynamodb_commit import DocumentCommit
from knowledge.adapters.dynamodb_items import (
    DELETED,
    DISCARDED,
    LISTING_PK,
    META,
    attributes,
    discarded_key,
    document_key,
    document_pk,
    sort_key,
    status_pk,
)
from knowledge.adapters.dynamodb_shapes import deleted_from_item, document_from_item, generation_from_item
from knowledge.adapters.dynamodb_transactions import too_many_writers
from knowledge.domain.document import DocId, DocumentStatus, Generation
from knowledge.ports import DocumentChange, DocumentPage, DocumentState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef


class DynamoDocumentRegistry(TableUser):
    """DocumentRegistry over the table; thread-safe as the client is."""

    def read(self, doc_id: DocId) -> DocumentState:
        """See DocumentRegistry; one Query of the document's partition. Raises CorruptState."""
        record, deleted = None, None
        discarded = []
        for item in query_all(self._client, self._table_name, "pk = :pk", {":pk": document_pk(doc_id)}):
            if sort_key(item) == META:
                record = document_from_item(item)
            elif sort_key(item) == DELETED:
                deleted = deleted_from_item(item)
            elif sort_key(item).startswith(DISCARDED):
                discarded.append(Generation(sort_key(item).removeprefix(DISCARDED)))
        return DocumentState(record, tuple(discarded), deleted)

    def commit(self, changes: Sequence[DocumentChange]) -> None:
        """See DocumentRegistry; a GetItem and a transaction for each try. TooLarge is raised before any call."""
        commit = DocumentCommit(self._client, self._table_name, changes)
        for _ in self._tries():
            if commit.attempt():
                return
        raise too_many_writers()

    def forget_discarded(self, doc_id: DocId, generation: Generation) -> None:
        """See DocumentRegistry; one DeleteItem."""
        with aws_errors(DYNAMODB):
            self._client.delete_item(TableName=self._table_name, Key=discarded_key(doc_id, generation))

    def generations(self, doc_ids: Sequence[DocId]) -> Mapping[DocId, Generation]:
        """See DocumentRegistry; one BatchGetItem, more when DynamoDB answers only a part. Raises CorruptState."""
        keys = [document_key(doc_id) for doc_id in dict.fromkeys(doc_ids)]
        names = ("pk", "sk", "doc_id", "generation")
        items = batch_get(self._client, self._table_name, keys, self._tries(), names=names)
        found = map(generation_from_item, items)
        return {doc_id: generation for doc_id, generation in found if generation is not None}

    def list(self, *, path_prefix: str, status: DocumentStatus | None, cursor: str | None, limit: int) -> DocumentPage:
        """See DocumentRegistry; one Query of an index, so the newest commits may be missing for some milliseconds.

        A page may hold fewer than `limit` records although another one follows: DynamoDB stops at one megabyte.
        Raises CorruptState.
        """
        partition = "listing_pk" if status is None else "status_pk"
        value = LISTING_PK if status is None else status_pk(status)
        values = {":partition": value, ":prefix": path_prefix} if path_prefix else {":partition": value}
        query: QueryInputTypeDef = {
            "TableName": self._table_name,
            "IndexName": "listing" if status is None else "by_status",
            "KeyConditionExpression": f"{partition} = :partition"
            + (" AND begins_with(file_path, :prefix)" if path_prefix else ""),
            "ExpressionAttributeValues": attributes(values),
            # One more than is returned tells whether another page follows.
            "Limit": limit + 1,
        }
        if cursor is not None:
            path, doc_id = page_cursor.decode_document(cursor, path_prefix)
            query["ExclusiveStartKey"] = {
                **document_key(doc_id),
                **attributes({partition: value, "file_path": path}),
            }
        with aws_errors(DYNAMODB):
            answer = self._client.query(**query)
        records = tuple(document_from_item(item) for item in answer["Items"][:limit])
        more = len(answer["Items"]) > limit or "LastEvaluatedKey" in answer
        return DocumentPage(records, page_cursor.encode_document(records[-1]) if more and records else None)
