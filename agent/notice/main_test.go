package notice_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// noon is the moment at which most tests happen.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
