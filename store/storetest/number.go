package storetest

import (
	"os"
	"strconv"
	"testing"

	"perch/must"
)

// Number is what a variable of the environment says, such as PERCH_KILLS, or otherwise.
func Number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	must.Succeed(t, err)
	return n
}
