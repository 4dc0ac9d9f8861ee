"""MongoDB collections; the condition is a filter document in JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson

from ...model.errors import Invalid
from . import port

SAMPLE = 200  # documents read to learn the fields
_FLAGS: dict[str, Any] = {"true": True, "false": False}  # a status may be a flag


class _MongoCollection:
    primary: str | None = "_id"

    def __init__(self, collection: Any, name: str, columns: Sequence[str]) -> None:
        self._collection = collection
        self.name = name
        self.columns = columns

    def pages(self, columns: Sequence[str], where: str | None, size: int) -> port.RowPages:
        """Yield all documents in the order of their key, each as a tuple of these fields."""
        key, matching = columns[0], _filter(where)

        async def read(after: Any) -> list[tuple[Any, ...]]:
            from pymongo.errors import PyMongoError

            wanted = matching if after is None else {"$and": [matching, {key: {"$gt": after}}]}
            try:
                found = await self._collection.find(wanted).sort(key).limit(size).to_list()
            except PyMongoError as error:
                raise port.query_rejected(error) from error
            return [(one.get(key), *(_plain(one.get(name)) for name in columns[1:])) for one in found]

        return port.keyset_pages(read, size)

    async def unclear(self, key: str, where: str | None) -> str | None:
        """Return why this field is not a unique key."""
        return await port.find_unclear(key, self.pages([key], where, 1000))

    async def update(self, key: str, changes: Sequence[port.RowUpdate]) -> set[str]:
        """Update documents one by one: repeating an update changes nothing."""
        from pymongo.errors import ConnectionFailure, ExecutionTimeout, PyMongoError

        found = set()
        try:
            for value, fields in changes:
                stored = {name: _FLAGS.get(str(one).lower(), one) for name, one in fields.items()}
                done = await self._collection.update_one({key: {"$in": _keys(value)}}, {"$set": stored})
                found |= {value} if done.matched_count else set()
        except (ConnectionFailure, ExecutionTimeout, OSError) as error:
            raise port.ExternalTableUnavailable(str(error)[:200]) from error
        except PyMongoError as error:
            raise port.query_rejected(error) from error
        return found


def _filter(where: str | None) -> dict[str, Any]:
    try:
        found = orjson.loads(where or "{}")
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise Invalid("the condition is not a JSON object", field="where", remedy="""write '{"status": "pending"}'""")
    return found


def _keys(value: str) -> list[Any]:
    """The keys that have this text: a string, an ObjectId or a number."""
    from bson import ObjectId

    whole = value.lstrip("-").isdigit() and len(value) < 19
    return [value, *([ObjectId(value)] if ObjectId.is_valid(value) else []), *([int(value)] if whole else [])]


def _plain(value: Any) -> Any:
    """Replace BSON types that JSON does not have."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if type(value).__module__.partition(".")[0] != "bson":
        return value
    return int(value) if isinstance(value, int) else str(value)


@asynccontextmanager
async def open_table(url: str, table: str, writable: bool) -> AsyncIterator[port.ExternalTable]:
    """Connect and find the collection; only a write-back calls `update`. Fields are learned from documents."""
    try:
        from pymongo import AsyncMongoClient
        from pymongo.errors import PyMongoError
    except ImportError as error:
        raise port.missing_driver("MongoDB", "mongo") from error
    client: Any = None
    try:
        try:
            client = AsyncMongoClient(url, tz_aware=True, serverSelectionTimeoutMS=10_000)
            database = client.get_default_database()
            names = await database.list_collection_names()
            known = await database[table].find().sort("_id").limit(SAMPLE).to_list()
        except (PyMongoError, OSError, ValueError) as error:
            raise port.unreachable(error) from error
        if table not in names:
            raise port.no_table(table, sorted(names))
        columns = list(dict.fromkeys(["_id", *(name for document in known for name in document)]))
        yield _MongoCollection(database[table], port.location("mongodb", url, table), columns)
    finally:
        if client is not None:
            await client.close()
