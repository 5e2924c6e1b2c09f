package mcp

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// TestARequestOfALostConnectionFails also in the moment in which the connection's
// context has ended and the request's has not yet: it has no answer, so it has an error.
func TestARequestOfALostConnectionFails(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	end(errCut)
	g := &guard{ctx: ended, base: &http.Transport{}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://127.0.0.1:1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := g.cause(t.Context(), r)
	if response != nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, errCut) {
		t.Errorf("it fails with %v", err)
	}
}
