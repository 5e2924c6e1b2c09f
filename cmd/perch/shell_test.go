package main

import (
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/command/commandtest"
)

// TestBashCompletes, robots by their ids and names among them. The earlier
// spellings are completed, too, but not listed.
func TestBashCompletes(t *testing.T) {
	bin := t.TempDir()
	commandtest.Program(t, bin, "perch", `if [ "$1" = devices ]; then
	echo 'a0b1c2d3e4f5  m5stack  2.2.4'
	echo '              touch'
	echo 'a0b1c2d3e4f6  m5stack  2.2.4'
	echo '              called kitchen'
	exit
fi`)
	const ids = "a0b1c2d3e4f5 a0b1c2d3e4f6"
	for line, want := range map[string]string{
		"perch ":                                "backup character check-config completion diary doctor health help memory notification open relay restore robot serve skill status version",
		"perch re":                              "relay restore",
		"perch nothing ":                        "",
		"perch doctor --":                       "--config --data --help --json --show-secrets",
		"perch serve --log-level ":              "debug error info warn",
		"perch serve --log-level w":             "warn",
		"perch notify --urgency=h":              "high",
		"perch notify --urgency=":               "high low normal",
		"perch notify --robot a":                ids,
		"perch notification ":                   "list send",
		"perch diary ":                          "list verify",
		"perch relay ":                          "list try",
		"perch character ":                      "card check export import list remove use",
		"perch memory ":                         "add forget list show stats",
		"perch notify --url ":                   "",
		"perch say ":                            ids + " kitchen",
		"perch say --url http://p a0b1c2d3e4f5": "a0b1c2d3e4f5",
		"perch say a0b1c2d3e4f5 ":               "",
		"perch robot forget a0b1c2d3e4f6":       "a0b1c2d3e4f6",
		"perch robot adopt ":                    ids + " kitchen",
		"perch robot ":                          "adopt forget gesture list reboot rename say set show token",
		"perch robot fo":                        "forget",
		"perch robot rename k":                  "kitchen",
		"perch completion ":                     "bash fish zsh",
	} {
		if got := strings.Join(commandtest.Complete(t, commands(), bin, line), " "); got != want {
			t.Errorf("%s<tab> offers %q, want %q", line, got, want)
		}
	}
}

// TestEarlierSpellings print the same as the commands of robot that they are,
// and no list shows them.
func TestEarlierSpellings(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	for earlier, now := range map[string]string{
		"devices": "robot list", "devices --help": "robot list --help", "say nobody x": "robot say nobody x", "say --help": "robot say --help",
		"adopt 123456": "robot adopt 123456", "token 020000000001": "robot token 020000000001", "forget --strangers": "robot forget --strangers",
		"forget": "robot forget", "notify": "notification send", "notify x --urgency loud": "notification send x --urgency loud",
	} {
		lines := [2]string{}
		var codes [2]int
		for i, line := range []string{earlier, now} {
			codes[i], lines[i] = perch(t, append(strings.Fields(line), "--data", h.Data)...)
		}
		verb, name := strings.Fields(earlier)[0], strings.Join(strings.Fields(now)[:2], " ")
		same := strings.NewReplacer("perch "+name, "perch "+verb, "help for list", "help for devices").Replace(lines[1])
		if before := strings.ReplaceAll(lines[0], "perch "+name, "perch "+verb); lines[0] == "" || codes[0] != codes[1] || before != same {
			t.Errorf("%s: %d %s\n%s: %d %s", earlier, codes[0], lines[0], now, codes[1], lines[1])
		}
	}
}
