package storetest

import (
	"os"
	"strconv"
	"testing"

	"perch/must"
)

// Number returns the number in an environment variable, such as PERCH_KILLS, or defaultValue if the
// variable is empty or not set.
func Number(t *testing.T, name string, defaultValue uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return defaultValue
	}
	n, err := strconv.ParseUint(text, 10, 64)
	must.Succeed(t, err)
	return n
}
