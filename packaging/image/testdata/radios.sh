#!/bin/sh
# Gives a machine three radios that hear one another: its own, a phone's and that of a
# Wi-Fi called Home, the latter two in network namespaces of their own. Then it takes
# NetworkManager's cable away, over which the test goes on to talk with the machine.
set -eux
modprobe mac80211_hwsim radios=3
for n in 1 2; do
	while [ ! -e "/sys/class/net/wlan$n" ]; do sleep 1; done
done
ip netns add phone
ip netns add home
iw phy "$(cat /sys/class/net/wlan1/phy80211/name)" set netns name phone
iw phy "$(cat /sys/class/net/wlan2/phy80211/name)" set netns name home
ip -n phone link set lo up
ip -n phone link set wlan1 up
mkdir -p /etc/netns/phone
[ -e /etc/resolv.conf ] || : >/etc/resolv.conf # or nothing can be put in its place
echo nameserver 10.42.0.1 >/etc/netns/phone/resolv.conf

cat >/run/home.conf <<'HOME'
network={
	ssid="Home"
	mode=2
	frequency=2437
	key_mgmt=WPA-PSK
	proto=RSN
	pairwise=CCMP
	psk="a good password"
}
HOME
ip netns exec home wpa_supplicant -B -i wlan2 -c /run/home.conf
ip -n home address add 192.168.77.1/24 dev wlan2
ip netns exec home dnsmasq --conf-file=/dev/null --port=0 --interface=wlan2 --bind-interfaces --dhcp-range=192.168.77.10,192.168.77.50 \
	--dhcp-leasefile=/run/home.leases --pid-file=/run/home.pid

cable=$(ls /sys/class/net | grep '^e' | head -n 1)
systemctl stop perch-portal
systemd-run --collect sh -c "nmcli device set $cable managed no; sleep 1; ip link set $cable up; ip address add 10.0.2.15/24 dev $cable; ip route replace default via 10.0.2.2"
