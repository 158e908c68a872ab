"""Messages of Flight SQL: names, fields and numbers, from which Protocol Buffers makes their classes.

    packed("DoPutUpdateResult", record_count=3)     bytes of google.protobuf.Any around the message
    unpacked(data)                                  ("CommandStatementQuery", the message)
    request("CancelQuery...", data)                 of an action: with Any around it, or without, as drivers send both

The fields are optional in the sense of proto2, so that one that a client left out is told from an empty one. On the
wire this is the same as the published proto3. Classes are made here, in place of generated code, which would be bound
to one version of the library.

Source: Apache Arrow, format/FlightSql.proto (names and numbers)
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.any_pb2 import Any as Wrapped
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from engine.errors import PlanError

_PACKAGE: Final = "arrow.flight.protocol.sql"
_URL: Final = f"type.googleapis.com/{_PACKAGE}."
_TABLE: Final = "catalog:1 db_schema:2 table:3"
#: fields as name:number, with the kind behind it where it is not a text
_MESSAGES: Final = {
    "CommandGetSqlInfo": "info:1:uint32*",
    "CommandGetXdbcTypeInfo": "data_type:1:int32",
    "CommandGetCatalogs": "",
    "CommandGetDbSchemas": "catalog:1 db_schema_filter_pattern:2",
    "CommandGetTables": "catalog:1 db_schema_filter_pattern:2 table_name_filter_pattern:3 table_types:4:string* "
    "include_schema:5:bool",
    "CommandGetTableTypes": "",
    "CommandGetPrimaryKeys": _TABLE,
    "CommandGetExportedKeys": _TABLE,
    "CommandGetImportedKeys": _TABLE,
    "CommandGetCrossReference": "pk_catalog:1 pk_db_schema:2 pk_table:3 fk_catalog:4 fk_db_schema:5 fk_table:6",
    "CommandStatementQuery": "query:1 transaction_id:2:bytes",
    "CommandStatementUpdate": "query:1 transaction_id:2:bytes",
    "CommandStatementSubstraitPlan": "plan:1:bytes transaction_id:2:bytes",
    "CommandPreparedStatementQuery": "prepared_statement_handle:1:bytes",
    "CommandPreparedStatementUpdate": "prepared_statement_handle:1:bytes",
    "CommandStatementIngest": "table_definition_options:1:bytes table:2 schema:3 catalog:4 temporary:5:bool "
    "transaction_id:6:bytes",
    "TableDefinitionOptions": "if_not_exist:1:int32 if_exists:2:int32",
    "TicketStatementQuery": "statement_handle:1:bytes",
    "DoPutUpdateResult": "record_count:1:int64",
    "DoPutPreparedStatementResult": "prepared_statement_handle:1:bytes",
    "ActionCreatePreparedStatementRequest": "query:1 transaction_id:2:bytes",
    "ActionCreatePreparedStatementResult": "prepared_statement_handle:1:bytes dataset_schema:2:bytes "
    "parameter_schema:3:bytes",
    "ActionClosePreparedStatementRequest": "prepared_statement_handle:1:bytes",
    "ActionCancelQueryRequest": "info:1:bytes",
    "ActionCancelQueryResult": "result:1:int32",
    # Messages of Flight itself have no Any around them.
    "CancelFlightInfoRequest": "info:1:bytes",
    "CancelFlightInfoResult": "status:1:int32",
}


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="drey/flight_sql.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            said, number, kind = (*field.split(":"), "string")[:3]
            label = FieldDescriptorProto.LABEL_REPEATED if kind.endswith("*") else FieldDescriptorProto.LABEL_OPTIONAL
            of_kind = FieldDescriptorProto.Type.Value(f"TYPE_{kind.rstrip('*').upper()}")
            message.field.add(name=said, number=int(number), type=of_kind, label=label)
    pool = DescriptorPool()
    pool.Add(file)  # type: ignore[no-untyped-call, unused-ignore]
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES}


_CLASSES: Final = _classes()


def packed(name: str, **fields: Any) -> bytes:
    """Return a message with Any around it."""
    return bytes(Wrapped(type_url=_URL + name, value=bare(name, **fields)).SerializeToString())


def bare(name: str, **fields: Any) -> bytes:
    """Return a message alone."""
    return bytes(_CLASSES[name](**fields).SerializeToString())


def unpacked(data: bytes) -> tuple[str, Any]:
    """Return name and message of what has Any around it. Raises: PlanError for other bytes, and for unknown names."""
    name, value = _wrapped(data)
    if name is None:
        raise PlanError("flight sql: the command is no message of Flight SQL")
    return name, _parsed(name, value)


def request(name: str, data: bytes) -> Any:
    """Return the message of an action, with or without Any around it. Raises: PlanError for other bytes."""
    wrapped, value = _wrapped(data)
    return _parsed(name, data if wrapped is None else value)


def _wrapped(data: bytes) -> tuple[str | None, bytes]:
    try:
        message = Wrapped.FromString(data)
    except DecodeError:
        return None, b""
    is_ours = message.type_url.startswith(_URL)
    return (message.type_url.removeprefix(_URL), message.value) if is_ours else (None, b"")


def _parsed(name: str, data: bytes) -> Any:
    if name not in _CLASSES:
        raise PlanError(f"flight sql: the message {name} is not known here")
    try:
        return _CLASSES[name].FromString(data)
    except DecodeError as error:
        raise PlanError(f"flight sql: {name} is damaged: {error}") from None


def given(message: Any, field: str) -> Any:
    """Return a field of a message, None where the client left it out."""
    return getattr(message, field) if message.HasField(field) else None
