"""One legacy query from an ephemeral port: ask.py LOCAL_ADDRESS HOST TYPE. Prints the first reply in hex, "" if none."""
import socket
import struct
import sys

local, host, qtype = sys.argv[1], sys.argv[2], int(sys.argv[3])
name = b"".join(bytes([len(label)]) + label.encode() for label in host.split(".")) + b"\0"
query = struct.pack("!6H", 0x1234, 0x0100, 1, 0, 0, 0) + name + struct.pack("!2H", qtype, 1)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(local))
sock.bind((local, 0))
sock.settimeout(1)
reply = b""
for _ in range(4):
    sock.sendto(query, ("224.0.0.251", 5353))
    try:
        reply = sock.recv(9000)
        break
    except socket.timeout:
        pass
print(reply.hex())
