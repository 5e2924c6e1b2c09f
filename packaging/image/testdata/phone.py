"""A phone at the access point, in its network namespace.

    ip netns exec phone python3 phone.py NAME [FIELD=VALUE...]

It joins the open Wi-Fi NAME, gets an address, asks what an Android asks, is led to the
page, says what that says, and sends the form with those fields where any are given.
"""
import html, re, subprocess, sys, time, urllib.parse, urllib.request


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


name, fields = sys.argv[1], dict(one.split("=", 1) for one in sys.argv[2:])
for _ in range(90):
    heard = run("iw", "dev", "wlan1", "scan").stdout
    if f"SSID: {name}" in heard:
        break
    time.sleep(2)
else:
    sys.exit(f"{name} is not heard")
it = next(one for one in heard.split("\nBSS ") if f"SSID: {name}" in one)
print("open" if "RSN" not in it and "WPA" not in it and "Privacy" not in it else "not open")
for _ in range(10):
    run("iw", "dev", "wlan1", "disconnect")
    run("iw", "dev", "wlan1", "connect", name)
    time.sleep(3)
    if "Connected to" in run("iw", "dev", "wlan1", "link").stdout:
        break
else:
    sys.exit("it does not let the phone in")
run("ip", "address", "flush", "dev", "wlan1")
got = run("/usr/lib/klibc/bin/ipconfig", "-t", "30", "-c", "dhcp", "-d", "wlan1")
address = re.search(r"inet (\S+?)/", run("ip", "-4", "address", "show", "dev", "wlan1").stdout)
print("address", address and address[1] or got)
answer = urllib.request.urlopen("http://connectivitycheck.gstatic.com/generate_204", timeout=30)
page = answer.read().decode()
print("led to", answer.url)
for said in re.findall(r'role="alert">(.*?)<', page):
    print("says", html.unescape(said))
for value, text in re.findall(r'<option value="([0-9a-f]{4,64})"[^>]*>(.*?) ·', page):
    print("hears", html.unescape(text))
if fields:
    fields["token"] = re.search(r'name="token" value="(.*?)"', page)[1]
    answer = urllib.request.urlopen(answer.url, urllib.parse.urlencode(fields).encode(), timeout=30)
    page = answer.read().decode()
    print("answer", answer.status, html.unescape(re.search(r'role="status"><strong>(.*?)<', page)[1]))
