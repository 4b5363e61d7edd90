"""The files call of a model's address: hosts upload images there. What was uploaded is described, never kept."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from aiohttp import web

FILES: Final = 256
"""How many uploads are remembered."""


@dataclass(frozen=True, slots=True)
class _Upload:
    id: str
    name: str
    media_type: str
    size: int
    created: int

    def described(self, *, epoch: bool) -> dict[str, object]:
        """Both dialects' names for the same facts; hosts of 0.1 want seconds, later ones ISO 8601."""
        return {
            "id": self.id,
            "type": "file",
            "object": "file",
            "filename": self.name,
            "mime_type": self.media_type,
            "size_bytes": self.size,
            "bytes": self.size,
            "created_at": self.created if epoch else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.created)),
            "downloadable": False,
            "purpose": "vision",
            "status": "processed",
        }


class Files:
    """The newest :data:`FILES` uploads."""

    def __init__(self) -> None:
        self._uploads: OrderedDict[str, _Upload] = OrderedDict()

    def add_to(self, app: web.Application, prefix: str) -> None:
        """Serve ``prefix/files``; without a prefix in the dialect of 0.1 hosts."""
        epoch = not prefix

        async def upload(request: web.Request) -> web.Response:
            return web.json_response((await self._take(request)).described(epoch=epoch))

        async def show_all(_request: web.Request) -> web.Response:
            files = [upload.described(epoch=epoch) for upload in self._uploads.values()]
            return web.json_response({"data": files, "has_more": False})

        async def show(request: web.Request) -> web.Response:
            found = self._uploads.get(request.match_info["id"])
            return failure(404, "no such file") if found is None else web.json_response(found.described(epoch=epoch))

        async def delete(request: web.Request) -> web.Response:
            self._uploads.pop(request.match_info["id"], None)
            return web.json_response({"id": request.match_info["id"], "type": "file_deleted", "deleted": True})

        app.router.add_post(f"{prefix}/files", upload)
        app.router.add_get(f"{prefix}/files", show_all)
        app.router.add_get(f"{prefix}/files/{{id}}", show)
        app.router.add_delete(f"{prefix}/files/{{id}}", delete)

    async def _take(self, request: web.Request) -> _Upload:
        file = (await request.post()).get("file")
        if not isinstance(file, web.FileField):
            raise web.HTTPBadRequest(text="no file in the form")
        with file.file as content:
            size = content.seek(0, 2)
        upload = _Upload(f"file_{uuid.uuid4().hex}", file.filename, file.content_type, size, int(time.time()))
        self._uploads[upload.id] = upload
        while len(self._uploads) > FILES:
            self._uploads.popitem(last=False)
        return upload


def failure(status: int, message: str) -> web.Response:
    """Answer as a model does that failed."""
    kinds = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "api_error")
    error = {"type": kind, "code": kind, "message": message}
    return web.json_response({"type": "error", "error": error}, status=status)
