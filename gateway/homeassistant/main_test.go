package homeassistant

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childBroker is the environment variable with the address of a broker. If it is set, this test program only runs a mirror
// on that broker until it is killed.
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
