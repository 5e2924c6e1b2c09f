package bridge

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
)

// TestCurl uses the API with the program curl.
func TestCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed; make deps installs it")
	}
	h := newHarness(t, func(o *Options) { o.ShortTimeout, o.LongTimeout = 200*time.Millisecond, 200*time.Millisecond })
	h.brain.think = replying(agent.Felt{Emotion: agent.Emotion{Name: "happy", Emoji: "😊"}}, agent.Say{Text: "Sure."})
	h.speaks(robotB, "speaks")
	h.perceives()
	h.robots.answer = func(ctx context.Context, tool string) (device.Result, error) {
		if !strings.HasSuffix(tool, "take_photo") {
			return device.Result{Text: "true"}, nil
		}
		<-ctx.Done()
		return device.Result{}, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "testdata/bridge.sh")
	c.Env = append(os.Environ(), "PUBLIC="+h.public(t).URL, "LOCAL="+h.local(t).URL, "KEY="+bridgeKey, "TOKEN="+adminToken, "RUN="+h.bus.RunID(),
		"no_proxy=*")
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), " asked, 0 failed\n") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
