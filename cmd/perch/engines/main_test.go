package engines_test

import (
	"os"
	"testing"

	"perch/cmd/perch/appliancetest"
)

func TestMain(m *testing.M) {
	appliancetest.RunChildProcess() // some synthesizers start this binary as a child process
	os.Exit(m.Run())
}
