package door

import (
	"encoding/json"
	"errors"
	"fmt"
)

// WhyNotJSON describes for a client why a body could not be decoded: which key
// holds a wrong type, or where it is not JSON.
func WhyNotJSON(err error) string {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Sprintf("%.100s may not be a JSON %s", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Sprintf("it is a JSON %s, and an object belongs here", wrong.Value)
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is no JSON at byte %d: %v", syntax.Offset, syntax)
	}
	return fmt.Sprintf("%.200s", err)
}
