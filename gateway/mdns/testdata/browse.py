"""Browses with Debian's python3-zeroconf and prints one JSON object for each event, until killed: browse.py
LOCAL_ADDRESS [TYPE]."""
import json
import sys
import threading

from zeroconf import ServiceBrowser, Zeroconf

SERVICE = (sys.argv[2] if len(sys.argv) > 2 else "_xiaozhi._tcp") + ".local."


def tell(**event):
    print(json.dumps(event), flush=True)


class Listener:
    def add_service(self, zc, kind, name):
        info = zc.get_service_info(kind, name, 3000)
        if info is None:
            return tell(event="unresolved", name=name)
        tell(
            event="added",
            name=name,
            server=info.server,
            port=info.port,
            addresses=sorted(info.parsed_addresses()),
            txt={k.decode(): v and v.decode() for k, v in info.properties.items()},
        )

    def update_service(self, zc, kind, name):
        pass

    def remove_service(self, zc, kind, name):
        tell(event="removed", name=name)


zeroconf = Zeroconf(interfaces=[sys.argv[1]])
ServiceBrowser(zeroconf, SERVICE, Listener())
tell(event="browsing")
threading.Event().wait()
