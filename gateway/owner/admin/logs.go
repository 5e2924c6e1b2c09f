package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"perch/gateway/httpserver"
)

// logs stores the recent lines of the log.
type logs interface {
	// NewFollower returns a reader of the lines with at least the given level: first the stored lines, or only the
	// ones that follow the line whose ID is after, and then new lines. ok is false if there are too many followers.
	NewFollower(minLevel slog.Level, after string) (f LogFollower, ok bool)
}

// LogFollower reads lines of the log.
type LogFollower interface {
	// Next waits for the next line, a JSON object with at, level, msg and attrs. missed is the number of lines
	// that were lost before this line.
	Next(ctx context.Context) (id string, line json.RawMessage, missed int, err error)
	Close()
}

// followLogs sends lines of the log until the client disconnects.
func (a *API) followLogs(ctx context.Context, w http.ResponseWriter, level, lastID string) error {
	minLevel := slog.LevelInfo
	if level != "" && minLevel.UnmarshalText([]byte(level)) != nil || strings.ContainsAny(level, "+-") {
		return &httpserver.Fault{Word: "bad_level", Sentence: "level is debug, info, warn or error", HTTP: http.StatusBadRequest}
	}
	f, ok := a.o.Logs.NewFollower(minLevel, lastID)
	if !ok {
		return &httpserver.Fault{Word: "too_many_readers", Sentence: "too many pages follow the log already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	defer f.Close()
	var next *httpserver.Message // a line that has to be sent after the message about missed lines; nil for none
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
