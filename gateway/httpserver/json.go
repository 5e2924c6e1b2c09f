package httpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// BadBody returns the error for a request body that cannot be used.
func BadBody(why string) error {
	return &Fault{Word: "bad_body", Sentence: why, HTTP: http.StatusBadRequest}
}

// Body reads the body of a request. If the body is larger than the limit of Limit, the error wraps
// *http.MaxBytesError. Any other error comes from BadBody.
func Body(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if err != nil && !errors.As(err, &tooLarge) {
		return nil, BadBody("the body did not arrive completely")
	}
	return body, err
}

// Decode decodes a JSON body into the value that into points to. It ignores unknown keys, because clients send
// keys that Perch does not need. Its error comes from BadBody.
func Decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return BadBody("the body is not the expected JSON object: " + WhyNotJSON(err))
	}
	return nil
}

// WhyNotJSON tells clients why a body could not be decoded: which key has a wrong type, or at which byte the
// body stops being JSON. For an error of another kind it returns the first 200 characters of the error's text.
func WhyNotJSON(err error) string {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Sprintf("%.100s may not be a JSON %s", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Sprintf("it is a JSON %s, not an object", wrong.Value)
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is not JSON at byte %d: %v", syntax.Offset, syntax)
	}
	return fmt.Sprintf("%.200s", err)
}

// Encode returns v as JSON. It panics if v cannot be encoded, which is a bug in this program.
func Encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
