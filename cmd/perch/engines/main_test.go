package engines_test

import (
	"os"
	"testing"

	"perch/cmd/perch/appliancetest"
)

func TestMain(m *testing.M) {
	appliancetest.RunChildProcess() // of the engines that speak in a process
	os.Exit(m.Run())
}
