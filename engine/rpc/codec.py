"""MessageCodec: messages, replies and errors as bytes.

    msgpack [ type name, body ]          body: the struct as a map
    msgpack [ "!", RemoteError ]         what the called component raised: class name, text, its plain fields

Only the types given at construction can travel; decoding never builds anything else, so bytes of a peer cannot make
this process run code. An engine error arrives as its own class with its fields; any other as RemoteCallError.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from engine import __version__
from engine import errors as engine_errors
from engine.errors import EngineError
from engine.rpc import errors as rpc_errors
from engine.rpc.errors import MessageCodecError, RemoteCallError

_ERROR_TAG = "!"
#: prefix of an error: an array of two, the first a text of one byte
_ERROR_PREFIX = b"\x92\xa1!"


class RemoteError(msgspec.Struct, frozen=True):
    """An exception as data."""

    type_name: str
    message: str
    fields: dict[str, bool | int | float | str | None] = {}


def _error_classes() -> dict[str, type[EngineError]]:
    return {
        name: value
        for module in (engine_errors, rpc_errors)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, EngineError)
    }


class MessageCodec:
    """Encodes and decodes the given message types."""

    def __init__(self, message_types: Iterable[type[msgspec.Struct]]) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {}
        for message_type in message_types:
            if message_type.__name__ in self._decoders:
                raise ValueError(f"two message types are named {message_type.__name__}")
            self._decoders[message_type.__name__] = msgspec.msgpack.Decoder(message_type)
        self._envelope: msgspec.msgpack.Decoder[tuple[str, msgspec.Raw]] = msgspec.msgpack.Decoder(
            tuple[str, msgspec.Raw]
        )
        self._error_decoder = msgspec.msgpack.Decoder(RemoteError)
        self._error_classes = _error_classes()

    def encode(self, message: object) -> bytes:
        """Return the bytes of a message; what is not plain typed data raises MessageCodecError."""
        name = type(message).__name__
        if name not in self._decoders:
            raise MessageCodecError(f"{name} is not a message type")
        try:
            return self._encoder.encode((name, message))
        except (TypeError, ValueError, OverflowError) as error:
            raise MessageCodecError(f"{name} cannot be sent: {error}") from error

    def decode(self, data: bytes) -> Any:
        """Return the message of its bytes, or raise MessageCodecError."""
        try:
            name, body = self._envelope.decode(data)
            decoder = self._decoders.get(name)
            if decoder is None:
                raise MessageCodecError(f"{name!r} is not a message type")
            return decoder.decode(body)
        except msgspec.ValidationError as error:  # plain data, of other fields
            raise MessageCodecError(
                f"not a message that this process understands: {error}. Another version of Drey has made it; this one "
                f"has {__version__}: it is to be upgraded first"
            ) from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise MessageCodecError(f"not a message: {error}") from error

    def is_error(self, data: bytes) -> bool:
        """Whether bytes are those of an exception; anything else is for ``decode``."""
        return data[: len(_ERROR_PREFIX)] == _ERROR_PREFIX

    def encode_error(self, error: BaseException) -> bytes:
        """Return the bytes of an exception."""
        simple = {
            key: value
            for key, value in vars(error).items()
            if not key.startswith("_") and (value is None or isinstance(value, bool | int | float | str))
        }
        remote = RemoteError(type(error).__name__, str(error), simple)
        return self._encoder.encode((_ERROR_TAG, remote))

    def decode_error(self, data: bytes) -> EngineError:
        """Return the exception of its bytes: the engine's own class, or RemoteCallError."""
        try:
            _, body = self._envelope.decode(data)
            remote = self._error_decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return MessageCodecError(f"not an error: {error}")
        error_class = self._error_classes.get(remote.type_name)
        if error_class is None:
            return RemoteCallError(f"{remote.type_name}: {remote.message}")
        # Classes of the tree have different constructors, so an error is made from its text and fields.
        decoded = error_class.__new__(error_class)
        decoded.args = (remote.message,)
        for key, value in remote.fields.items():
            setattr(decoded, key, value)
        return decoded
