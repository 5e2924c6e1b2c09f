package tools

import (
	"fmt"
	"net/http"

	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// Errors of a call to a robot's tool.
var (
	// ErrNoTool is wrapped if the robot does not list the tool.
	ErrNoTool = &httpserver.Fault{Word: "unknown_tool", Sentence: "the robot has no such tool", HTTP: http.StatusNotFound}
	// ErrToolTimeout is wrapped if the robot does not respond in time.
	ErrToolTimeout = &httpserver.Fault{Word: "tool_timeout", Sentence: "the robot did not answer the call in time", HTTP: http.StatusGatewayTimeout}
	// ErrToolFailed is wrapped if the robot responds that the tool has failed.
	ErrToolFailed = &httpserver.Fault{Word: "tool_failed", Sentence: "the robot's tool failed", HTTP: http.StatusBadGateway}
	// ErrChannelClosed is returned if the channel closes before the response, or was closed before the call.
	ErrChannelClosed = &httpserver.Fault{Word: "robot_offline", Sentence: "the robot's channel closed before the tool had answered",
		HTTP: http.StatusConflict}
)

// Failed returns an error that wraps kind and adds a detail to its sentence, cut to limit.Data bytes.
func Failed(kind *httpserver.Fault, format string, a ...any) error {
	detail := plain.Clip(fmt.Sprintf(format, a...), limit.Data)
	return &httpserver.Fault{Word: kind.Word, Sentence: kind.Sentence + ": " + detail, HTTP: kind.HTTP, Err: kind}
}
