package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"perch/gateway/httpserver"
)

// logs is the recent log, and what is added to it.
type logs interface {
	// NewFollower reads the lines of a level and above: all that are stored, or all after
	// an id. ok is false if too many followers exist.
	NewFollower(least slog.Level, after string) (f LogFollower, ok bool)
}

// LogFollower reads log lines.
type LogFollower interface {
	// Next waits for a line: JSON with at, level, msg and attrs. missed is the number
	// of lines lost before it.
	Next(ctx context.Context) (id string, line json.RawMessage, missed int, err error)
	Close()
}

// followLogs sends log lines until the client leaves.
func (a *API) followLogs(ctx context.Context, w http.ResponseWriter, level, lastID string) error {
	least := slog.LevelInfo
	if level != "" && least.UnmarshalText([]byte(level)) != nil || strings.ContainsAny(level, "+-") {
		return &httpserver.Fault{Word: "bad_level", Sentence: "level is debug, info, warn or error", HTTP: http.StatusBadRequest}
	}
	f, ok := a.o.Logs.NewFollower(least, lastID)
	if !ok {
		return &httpserver.Fault{Word: "too_many_readers", Sentence: "too many pages follow the log already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	defer f.Close()
	var next *httpserver.Message // to follow a message about missed lines
	return httpserver.Stream(ctx, w, func(ctx context.Context) (httpserver.Message, error) {
		if next != nil {
			m := *next
			next = nil
			return m, nil
		}
		id, line, missed, err := f.Next(ctx)
		m := httpserver.Message{ID: id, Event: "line", Data: line}
		if err == nil && missed > 0 {
			next = &m
			return httpserver.Message{ID: id, Event: "missed", Data: map[string]int{"lines": missed}}, nil
		}
		return m, err
	})
}
