package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"perch/cmd/perch/config"
	"perch/must"
)

// TestMusicIsTriedAFewAtATime checks that twenty sources do not run twenty decoders.
func TestMusicIsTriedAFewAtATime(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\ntouch " + dir + "/run.$$\nls " + dir + " | grep -c run >>" + dir + "/counts\nsleep 0.3\nrm " + dir + "/run.$$\nprintf aaaa\n"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "ffmpeg"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	d := Examined(t)
	for i := range 20 {
		file := filepath.Join(dir, fmt.Sprint(i, ".mp3"))
		must.Succeed(t, os.WriteFile(file, []byte("x"), 0o600))
		d.Config.Music = append(d.Config.Music, config.Music{Name: fmt.Sprint("m", i), Source: file})
	}
	d.checkMusic(t.Context())
	counts := strings.Fields(string(must.Value(os.ReadFile(filepath.Join(dir, "counts")))(t)))
	for _, n := range counts {
		if must.Value(strconv.Atoi(n))(t) > triedAtOnce {
			t.Fatalf("%s decoders run at once", n)
		}
	}
	if len(counts) != 20 {
		t.Errorf("%d decoders ran", len(counts))
	}
}
