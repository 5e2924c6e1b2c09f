#!/bin/sh
# Runs the program of the arm64 package on an emulated machine: a Debian without
# network that is booted from memory. There perch prints its version, and a simulated
# robot connects to perch and talks. The output is written to dist/arm64.log.
#
#   packaging/arm64.sh
set -eu
cd "$(dirname "$0")/.."

oldest=bookworm
# Install the dependencies of the package, the program with which the simulated robot
# speaks, a kernel and a shell. The packages are only unpacked: configuring them would
# take an arm64 machine.
packages=base-files,dash,coreutils,sed,grep,gzip,mount,procps,iproute2,libc-bin,libopus0,libspeexdsp1,libpocketsphinx3,libsphinxbase3,pocketsphinx-en-us,espeak-ng,flite,linux-image-cloud-arm64

if [ "$(id -u)" -ne 0 ]; then
	echo "only root can unpack a Debian with its owners and devices" >&2
	exit 1
fi
debs=$(packaging/deb.sh dist arm64)
root=$PWD/dist/arm64
if [ ! -d "$root.debian" ]; then
	rm -rf "$root.new"
	mmdebstrap --variant=extract --architectures=arm64 --include="$packages" \
		--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr "$oldest" "$root.new" >dist/arm64.log 2>&1 || { cat dist/arm64.log >&2; exit 1; }
	mv "$root.new" "$root.debian"
fi
rm -rf "$root"
cp -a "$root.debian" "$root"
for deb in $debs; do dpkg-deb -x "$deb" "$root"; done

kernel=$(echo "$root"/boot/vmlinuz-*)
cp "$kernel" dist/arm64.kernel
# Create what the maintainer scripts would have created, and remove what is not needed in memory.
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/data"
rm -rf "$root"/boot "$root"/usr/lib/modules "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale "$root"/var
for lib in blas lapack; do
	ln -sf "$lib/lib$lib.so.3" "$root/usr/lib/aarch64-linux-gnu/lib$lib.so.3"
done
[ -e "$root/bin/sh" ] || ln -s dash "$root/usr/bin/sh"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"

cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin HOME=/tmp PERCH_MQTT_BROKER=none
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
ip link set lo up
say() { echo "seen: $*"; }
say "machine $(uname -m), Linux $(uname -r)"
perch version 2>&1 | while read -r line; do say "$line"; done
perch serve --data /data >/tmp/log 2>&1 &
pid=$!
n=0
until perch robot list --url http://127.0.0.1:8004 >/dev/null 2>&1 || [ $n -gt 120 ]; do n=$((n + 1)); sleep 1; done
say "ready after $n s of waiting"
perch-tools robot --ota http://127.0.0.1:8003/xiaozhi/ota/ --mac 02:00:00:00:00:01 --say "what time is it" --say "remember that my keys are in the kitchen" >/tmp/robot 2>&1
say "the robot ended with $?"
sed 's/^/robot: /' /tmp/robot
sed 's/^/log: /' /tmp/log
perch robot list --url http://127.0.0.1:8004 2>&1 | while read -r line; do say "$line"; done
say "$(grep -E '^(VmRSS|RssAnon):' /proc/$pid/status | tr -s '\t ' ' ' | tr '\n' ' ')"
kill $pid
wait $pid
say "perch ended with $?"
echo o >/proc/sysrq-trigger
sleep 10
INIT
chmod 755 "$root/init"
(cd "$root" && find . -print0 | cpio --quiet -0 -H newc -o | gzip -1) >dist/arm64.initrd
rm -rf "$root"

timeout 1200 qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 3072 -nic none -nographic -no-reboot \
	-kernel dist/arm64.kernel -initrd dist/arm64.initrd -append "console=ttyAMA0 rdinit=/init panic=-1 quiet" </dev/null | tr -d '\r' >dist/arm64.log
grep -E '^(seen|robot): ' dist/arm64.log
for want in 'seen: machine aarch64' 'seen: perch ' 'seen: the robot ended with 0' 'seen: perch ended with 0'; do
	grep -q "^$want" dist/arm64.log || { echo "not seen: $want; the whole log is dist/arm64.log" >&2; exit 1; }
done
