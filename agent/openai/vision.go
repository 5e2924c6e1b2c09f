package openai

import (
	"context"
	"fmt"
	"strings"

	"perch/agent"
	"perch/agent/thinker"
	"perch/remote"
)

const maxPicture = 8 << 20 // bytes

// DescribeImage implements agent.Seer. It returns agent.ErrBlind unless Options.Vision is set.
func (e *Engine) DescribeImage(ctx context.Context, l agent.Look) (string, error) {
	if !e.o.Vision {
		return "", agent.ErrBlind
	}
	return thinker.DescribeImage(ctx, l, maxPicture, e.continueVision)
}

// continueVision is Continue for a prompt with a picture. If the server says that its model
// does not accept pictures (see aboutPictures), the error wraps agent.ErrBlind.
func (e *Engine) continueVision(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	return e.retry(ctx, p, out, func(ctx context.Context, err error) error {
		if r := refused(err); r != nil && aboutPictures(&r.Refusal) {
			return fmt.Errorf("%w: the model %s at %s", agent.ErrBlind, e.o.Model, remote.Address(e.base))
		}
		return e.explain(ctx, err)
	})
}

// aboutPictures reports whether a refusal mentions pictures, which usually means that the model has no vision.
// llama.cpp says "image input is not supported", Ollama "missing data required for image input",
// and others "does not support images" or "is not a multimodal model".
func aboutPictures(r *remote.Refusal) bool {
	return r.Status != 401 && r.Status != 403 && r.Status != 429 &&
		mentions(strings.ToLower(r.Reason), "image", "vision", "multimodal", "mmproj")
}
