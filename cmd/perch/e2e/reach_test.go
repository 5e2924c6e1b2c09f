package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// TestARefusedToken: whoever brings a token is told which it was and where the
// right one is, by a path that means something where they are.
func TestARefusedToken(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	file := filepath.Join(t.TempDir(), "token")
	must.Succeed(t, os.WriteFile(file, []byte("not the one at all"), 0o600))
	t.Setenv("PERCH_TOKEN", "")
	for line, words := range map[string][]string{
		"robot list --url " + h.URL("") + " --token-file " + file: {"refuses the token in " + file},
		"robot list --url " + h.URL(""):                           {"wants its admin token", "--token-file FILE"},
	} {
		out := bare(t, line, 1)
		for _, word := range append(words, h.URL(""), "sudo cat /var/lib/perch/admin-token", "on the machine that it runs on") {
			if !strings.Contains(out, word) {
				t.Errorf("%s says %q, not %q", line, out, word)
			}
		}
		if strings.Contains(out, "in the data directory") || strings.Contains(out, h.Data) || strings.Contains(out, "not the one at all") {
			t.Errorf("%s says %q", line, out)
		}
	}
	t.Setenv("PERCH_TOKEN", "another that is wrong")
	bare(t, "robot list --url "+h.URL(""), 1, "refuses the token in PERCH_TOKEN")
}
