package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"perch/gateway/httpserver"
)

// logs are the lines that were logged last, and those to come.
type logs interface {
	// NewFollower reads the lines of a level and above: all that are kept, or those after
	// the one of an id. ok is false where too many read already. Close ends it.
	NewFollower(least slog.Level, after string) (f LogFollower, ok bool)
}

// LogFollower reads what is logged.
type LogFollower interface {
	// Next waits for a line: JSON with at, level, msg and attrs. missed is how
	// many went by unread before it.
	Next(ctx context.Context) (id string, line json.RawMessage, missed int, err error)
	Close()
}

// followLogs sends what is logged until the client goes.
func (d *API) followLogs(ctx context.Context, w http.ResponseWriter, level, lastID string) error {
	if d.o.Logs == nil {
		return errNot("a log that is kept")
	}
	least := slog.LevelInfo
	if level != "" && least.UnmarshalText([]byte(level)) != nil || strings.ContainsAny(level, "+-") {
		return &httpserver.Fault{Word: "bad_level", Sentence: "level is debug, info, warn or error", HTTP: http.StatusBadRequest}
	}
	f, ok := d.o.Logs.NewFollower(least, lastID)
	if !ok {
		return &httpserver.Fault{Word: "too_many_readers", Sentence: "too many pages follow the log already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	defer f.Close()
	var held *httpserver.Message // behind what says that lines are missing
	return httpserver.Stream(ctx, w, func(ctx context.Context) (httpserver.Message, error) {
		if held != nil {
			m := *held
			held = nil
			return m, nil
		}
		id, line, missed, err := f.Next(ctx)
		m := httpserver.Message{ID: id, Event: "line", Data: line}
		if err == nil && missed > 0 {
			held = &m
			return httpserver.Message{ID: id, Event: "missed", Data: map[string]int{"lines": missed}}, nil
		}
		return m, err
	})
}
