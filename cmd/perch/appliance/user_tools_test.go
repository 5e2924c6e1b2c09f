package appliance_test

import (
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// TestModelsUseTheOwnersTools checks that a model can call the tools that a robot has only for its owner if
// robots.user_tools is set, and not otherwise.
func TestModelsUseTheOwnersTools(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		p := appliancetest.NewPeers(t)
		p.Calls = `[{"index":0,"id":"c1","type":"function","function":{"name":"self_screen_get_info","arguments":"{}"}}]`
		c := appliancetest.Config()
		p.Use(&c)
		c.Robots.UserTools = allowed
		h := appliancetest.Start(t, c, t.TempDir())
		r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
		_, called := r.LastTime(appliancetest.Match(func(c simrobot.Called) bool { return c.Name == "self.screen.get_info" }))
		if called != allowed {
			t.Errorf("with user_tools %v: called %v", allowed, called)
		}
	}
}
