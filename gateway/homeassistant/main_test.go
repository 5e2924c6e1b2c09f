package homeassistant

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childBroker names the broker that a copy of this test mirrors to until it is
// killed.
const childBroker = "PERCH_TEST_MIRROR"

func TestMain(m *testing.M) {
	if at := os.Getenv(childBroker); at != "" {
		h := newHarness()
		h.options.Broker = at
		mirror, err := New(h.options)
		if err == nil {
			err = mirror.Run(context.Background())
		}
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
