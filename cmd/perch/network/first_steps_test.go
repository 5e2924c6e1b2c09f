package network

import (
	"cmp"
	"strings"
	"testing"
)

// TestWhatToDoNext: the first steps contain the address for the robot's set-up page, the owner's page if it is
// on, and the command of the doctor, with sudo if the user needs it.
func TestWhatToDoNext(t *testing.T) {
	for name, c := range map[string]struct {
		n    firstSteps
		says []string
		not  []string
	}{
		"by name and by number": {firstSteps{name: "http://perch.local:8003", numeric: "http://192.0.2.5:8003"},
			[]string{"Custom OTA URL:\n    http://perch.local:8003/xiaozhi/ota/\n", "    http://192.0.2.5:8003/xiaozhi/ota/\n", "    perch doctor\n"},
			[]string{"browser"}},
		"by number": {firstSteps{numeric: "http://192.0.2.5:8003"}, []string{"    http://192.0.2.5:8003/xiaozhi/ota/\n"}, []string{".local", "No robot"}},
		"with a page": {firstSteps{name: "http://perch.local:8003", page: "http://127.0.0.1:8004/", flags: " --data x"},
			[]string{"Open the page in a browser on this machine:\n    http://127.0.0.1:8004/\n", "    perch open --data x\n"}, nil},
		"at a terminal": {firstSteps{program: "bin/perch", name: "http://perch.local:8003", page: "http://127.0.0.1:8004/", link: "http://127.0.0.1:8004/#/in/CODE", flags: " --data x"},
			[]string{"    http://127.0.0.1:8004/#/in/CODE\n", "once, within ten minutes. After that the page is at http://127.0.0.1:8004/\n", "    bin/perch open --data x\n"}, nil},
		"with a page for this machine alone": {firstSteps{page: "http://127.0.0.1:8004/"}, []string{"http://127.0.0.1:8004/\n"},
			[]string{"perch open"}},
		"of a folder":    {firstSteps{flags: " --data x"}, []string{"    perch doctor --data x\n", "No robot can connect"}, []string{"OTA"}},
		"for a loopback": {firstSteps{}, []string{"only this machine reaches", "perch doctor"}, []string{"OTA"}},
		"for the packaged service": {firstSteps{program: "sudo perch", name: "http://perch.local:8003", page: "http://127.0.0.1:8004/"},
			[]string{"    sudo perch open\n", "    sudo perch doctor\n"}, nil},
	} {
		c.n.program = cmp.Or(c.n.program, "perch")
		text := c.n.String()
		for _, word := range c.says {
			if !strings.Contains(text, word) {
				t.Errorf("%s: %q does not say %q", name, text, word)
			}
		}
		for _, word := range c.not {
			if strings.Contains(text, word) {
				t.Errorf("%s: %q says %q", name, text, word)
			}
		}
	}
}
