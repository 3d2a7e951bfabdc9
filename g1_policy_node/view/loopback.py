"""A viser server that only pages of this machine may talk to."""

import functools
import re
from unittest import mock

import viser
import websockets.asyncio.server

LOOPBACK = '127.0.0.1'
_ORIGINS = (re.compile(r'http://(127\.0\.0\.1|localhost)(:\d+)?'), None)
"""None: no browser. A browser names the page that asks, which may be of any site."""


def serve(port: int) -> viser.ViserServer:
    """Serve on this machine at `port`, or the next free one; foreign pages are refused (403).

    Binding to loopback keeps other machines out, not the pages of other sites in a browser here.
    viser has no option for it, so the websocket server it starts is given one.
    """
    guarded = functools.partial(websockets.asyncio.server.serve, origins=_ORIGINS)
    with mock.patch.object(websockets.asyncio.server, 'serve', guarded):
        return viser.ViserServer(LOOPBACK, port, label='g1', verbose=False)
