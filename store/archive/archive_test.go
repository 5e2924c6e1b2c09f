package archive

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if data := os.Getenv(restoreInto); data != "" {
		backup, err := os.Open(os.Args[1])
		if err == nil {
			_, _, err = at(data, slog.Default()).Restore(context.Background(), backup)
		}
		if err != nil {
			slog.Error("not restored", "err", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
