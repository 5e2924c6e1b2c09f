"""Announces a Wyoming server as those written in Python do, until killed: wyoming.py LOCAL_ADDRESS NAME PORT. No host
name is given, so the instance's serves as one."""
import socket
import sys
import threading

from zeroconf import ServiceInfo, Zeroconf

local, name, port = sys.argv[1:]
zeroconf = Zeroconf(interfaces=[local])
zeroconf.register_service(
    ServiceInfo(
        "_wyoming._tcp.local.",
        name + "._wyoming._tcp.local.",
        addresses=[socket.inet_aton(local)],
        port=int(port),
    )
)
print('{"event": "announced"}', flush=True)
threading.Event().wait()
