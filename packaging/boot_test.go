package packaging_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// looks is a script that runs inside the booted root. It writes each observation to a line of /root/seen.
const looks = `#!/bin/sh
exec >/root/seen 2>/root/errors
show() { systemctl show perch.service -p "$1" --value; }
wait_for() { for i in $(seq 300); do eval "$1" && return; sleep 0.1; done; }
wait_for '[ "$(show ActiveState)" = active ]'
echo "state $(show ActiveState) $(show SubState)"
first=$(show MainPID)
echo "user $(stat -c %U /proc/$first)"
echo "secret $(tr '\0' '\n' </proc/$first/environ | sed -n 's/^CREDENTIALS_DIRECTORY=//p' | xargs ls | tr '\n' ' ')"
grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/$first/status | tr -s '\t ' ' '
wait_for 'perch-tools robot --ota http://127.0.0.1:8003/xiaozhi/ota/ --mac 02:00:00:00:00:02 --event "face_detected={}" >/root/robot 2>&1'
echo "robot $(perch robot list | tr -d ':' | grep -o 020000000002 | head -1)"
perch robot adopt 020000000002 # that is on the disk when it returns
own=$(sha256sum </etc/perch/perch.yaml)
change='"Bo"'
bash -c 'exec 3<>/dev/tcp/127.0.0.1/8004
printf "PUT /api/v1/config/persona.name HTTP/1.1\r\nHost: 127.0.0.1:8004\r\nX-Admin-Token: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" \
	"$(cat /var/lib/perch/admin-token)" "${#1}" "$1" >&3
head -n 1 <&3 | tr -d "\r"' - "$change"
echo "configured $(grep -c 'name: Bo' /var/lib/perch/settings.yaml) $(stat -c '%U %G %a' /var/lib/perch/settings.yaml) $(ls /etc/perch | tr '\n' ' ')"
[ "$own" = "$(sha256sum </etc/perch/perch.yaml)" ] && echo "the owner's file stays"
kill -STOP "$first" # it hangs
wait_for '[ "$(show MainPID)" != "$first" ] && [ "$(show ActiveState)" = active ]'
echo "after hanging $(show ActiveState) restarts $(show NRestarts)"
for n in 2 3 4 5 6 7; do
	old=$(show MainPID)
	kill -KILL "$old"
	wait_for '[ "$(show MainPID)" != "$old" ] && [ "$(show ActiveState)" = active ]'
done
echo "after kills $(show ActiveState) restarts $(show NRestarts)"
echo "still there $(perch robot list | tr -d ':' | grep -o 020000000002 | head -1)"
systemctl stop perch.service
echo "stopped $(show Result)"
umask 077; echo secret >/etc/perch/brain.key # as anybody makes it
echo 'brains: [{kind: openai, url: "http://127.0.0.1:9/v1", model: m, key_file: /etc/perch/brain.key}]' >/etc/perch/perch.yaml
systemctl reset-failed perch.service # or the restarts of before would count
wait_for '[ "$(show NRestarts)" = 0 ]'
systemctl start --no-block perch.service
wait_for '[ "$(show NRestarts)" -gt 1 ]'
echo "a command $(perch robot list 2>&1 | grep -o 'no appliance runs here: perch.service ends again and again')"
echo "the doctor $(perch doctor 2>&1 | grep -c 'FAIL.*the user perch cannot read /etc/perch/brain.key')"
wait_for 'journalctl -u perch -p err -n 40 | grep -q brain.key'
echo "the journal $(journalctl -u perch -p err -n 40 | grep -o 'the user perch cannot read /etc/perch/brain.key' | head -1)"
rm /etc/perch/brain.key; : >/etc/perch/perch.yaml
systemctl poweroff
`

// booted boots the root with systemd in a container, and checks how systemd runs the unit: when the appliance
// counts as started, and that systemd restarts the appliance after it hangs or ends.
func booted(t *testing.T, r root) {
	if _, err := exec.LookPath("systemd-nspawn"); err != nil {
		t.Skip("systemd-nspawn is not installed: packaging/deps.sh deb installs it")
	}
	for path, text := range map[string]string{
		"root/looks":            looks,
		"etc/perch/secrets/own": "a key of the owner's\n",
		"etc/perch/perch.yaml":  "",
		"etc/machine-id":        "",
		"root/seen":             "",
		"root/errors":           "",
		"etc/hostname":          "perch\n",
		"etc/systemd/system/looks.service": "[Unit]\nAfter=basic.target\n[Service]\nType=simple\nExecStart=/bin/sh /root/looks\n" +
			"[Install]\nWantedBy=multi-user.target\n",
		// These times are short, because a test cannot wait a minute for the watchdog or for a restart.
		"etc/systemd/system/perch.service.d/quick.conf": "[Service]\nWatchdogSec=3\nRestartSec=0\n",
	} {
		path = filepath.Join(r.path, path)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	}
	r.must(t, "systemctl", "enable", "looks.service")
	defer func() {
		for _, path := range []string{"etc/systemd/system/perch.service.d", "etc/systemd/system/looks.service",
			"etc/systemd/system/multi-user.target.wants/looks.service", "etc/perch/secrets/own"} {
			if err := os.RemoveAll(filepath.Join(r.path, path)); err != nil {
				t.Error(err)
			}
		}
	}()
	r.withoutProc(t) // the container mounts its own /proc
	defer r.withProc(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	boot := exec.CommandContext(ctx, "systemd-nspawn", "-D", r.path, "--boot", "--private-network", "--register=no", "--keep-unit", "--console=pipe",
		"--quiet")
	boot.Cancel = func() error { return boot.Process.Signal(os.Interrupt) } // shuts down the container and all its processes
	boot.WaitDelay = 20 * time.Second
	console, err := boot.CombinedOutput()
	seen, _ := os.ReadFile(filepath.Join(r.path, "root/seen"))
	if len(seen) == 0 && err != nil && ctx.Err() == nil {
		t.Skipf("no systemd can be booted here: %v %s", err, console)
	}
	errors, _ := os.ReadFile(filepath.Join(r.path, "root/errors"))
	for _, want := range []string{
		"state active running", "user perch", "secret secrets_own", "CapEff: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2",
		"robot 020000000002", "HTTP/1.1 200 OK", "configured 1 perch perch 600 perch.yaml secrets", "the owner's file stays",
		"after hanging active restarts 1", "after kills active restarts 7", "still there 020000000002", "stopped success",
		"a command no appliance runs here: perch.service ends again and again", "the doctor 1",
		"the journal the user perch cannot read /etc/perch/brain.key",
	} {
		if !strings.Contains(string(seen), want+"\n") && !strings.Contains(string(seen), want+" \n") {
			t.Errorf("%q was not seen", want)
		}
	}
	if t.Failed() {
		t.Logf("seen:\n%s\nerrors:\n%s\nconsole (%v):\n%s", seen, errors, err, console)
		t.Log(r.run(t, "journalctl", "-D", "/var/log/journal", "--no-pager", "-u", "perch", "-n", "60"))
	}
}
