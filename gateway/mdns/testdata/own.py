"""Answers for a host name with Debian's python3-zeroconf, until killed: own.py LOCAL_ADDRESS HOST ADDRESS."""
import socket
import sys
import threading

from zeroconf import ServiceInfo, Zeroconf

local, host, address = sys.argv[1:]
zeroconf = Zeroconf(interfaces=[local])
zeroconf.register_service(
    ServiceInfo(
        "_other._tcp.local.",
        "other._other._tcp.local.",
        addresses=[socket.inet_aton(address)],
        port=9,
        server=host + ".",
    )
)
print('{"event": "owning"}', flush=True)
threading.Event().wait()
