"""A device plugin for the kubelet of the tests' Kubernetes: it hands out names, and notes to whom.

It speaks kubelet's device plugin API, v1beta1, by gRPC over sockets in kubelet's folder. The few
messages are written and read by hand, as protobuf has them on the wire.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

FOLDER = Path(os.environ.get("GPUWATCH_KUBERNETES", "/tmp/gpuwatch-kubernetes")) / (
    "kubelet/device-plugins"
)
"""Kubelet's ``/var/lib/kubelet/device-plugins``, as this machine sees it."""
RESOURCE, VARIABLE = "gpuwatch.test/device", "TEST_DEVICES"
_SOCKET = "gpuwatch-test.sock"


class DevicePlugin:
    """Offers devices of these names as :data:`RESOURCE` until it is closed. A container finds those
    it was given in :data:`VARIABLE`."""

    def __init__(self, devices: Sequence[str]) -> None:
        self.given: list[tuple[str, ...]] = []
        """What each container was given, in their order."""
        self._devices = devices
        self._closed = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(4))
        answers = {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda *_: b""),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self._list),
            "Allocate": grpc.unary_unary_rpc_method_handler(self._allocate),
        }
        handler = grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", answers)
        self._server.add_generic_rpc_handlers((handler,))
        self._server.add_insecure_port(f"unix://{FOLDER / _SOCKET}")
        self._server.start()
        with grpc.insecure_channel(f"unix://{FOLDER / 'kubelet.sock'}") as channel:
            register: Callable[..., bytes] = channel.unary_unary("/v1beta1.Registration/Register")
            texts = ("v1beta1", _SOCKET, RESOURCE)
            register(b"".join(field(at, text.encode()) for at, text in enumerate(texts, 1)),
                     timeout=20)  # fmt: skip

    def _list(self, request: bytes, context: Any) -> Iterator[bytes]:
        """All devices, once: they stay as they are."""
        yield b"".join(
            field(1, field(1, name.encode()) + field(2, b"Healthy")) for name in self._devices
        )
        self._closed.wait()

    def _allocate(self, request: bytes, context: Any) -> bytes:
        answer = b""
        for container in values(request):
            names = tuple(value.decode() for value in values(container))
            self.given.append(names)
            variable = field(1, VARIABLE.encode()) + field(2, ",".join(sorted(names)).encode())
            answer += field(1, field(1, variable))
        return answer

    def close(self) -> None:
        self._closed.set()
        self._server.stop(None).wait()
        (FOLDER / _SOCKET).unlink(missing_ok=True)


def field(number: int, value: bytes) -> bytes:
    """A field of a protobuf message: text, bytes or another message, under 128 bytes of it."""
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def values(message: bytes) -> Iterator[bytes]:
    """The values of a message whose only field has number 1."""
    while message:
        assert message[0] == 1 << 3 | 2 and message[1] < 128
        end = 2 + message[1]
        yield message[2:end]
        message = message[end:]
