package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"perch/device"
	"perch/gateway/httpserver"
)

// Token holds the data that a user enters in a client that acts as the robot, such as a web page.
type Token struct {
	Robot    device.ID `json:"robot"`
	DeviceID string    `json:"device_id"` // MAC address, as the firmware spells it
	ClientID string    `json:"client_id"` // Client-Id of the only client that may use the token; may be empty
	Address  string    `json:"address"`   // URL of the WebSocket for robots
	Token    string    `json:"token"`
}

// tokenRequest is the body of a request for a token.
type tokenRequest struct {
	ClientID string `json:"client_id"` // Client-Id of the client that is to use the token; empty for the adopted client
}

// issueToken returns a token for a client of the robot. The token is a secret that must not be logged.
func (a *API) issueToken(robot device.Robot, w tokenRequest) (Token, error) {
	if len(w.ClientID) > device.MaxClient {
		return Token{}, httpserver.BadBody("client_id is the Client-Id that the client sends, of at most 128 bytes")
	}
	id := robot.ID
	robot, token, err := a.o.Robots.Token(id, device.NewClient(w.ClientID))
	switch {
	case errors.Is(err, device.ErrNotAdopted):
		return Token{}, &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
			Sentence: fmt.Sprintf("%s: perch robot adopt %s", err, id)}
	case errors.Is(err, device.ErrOtherClient):
		return Token{}, &httpserver.Fault{Word: "other_client", HTTP: http.StatusConflict,
			Sentence: fmt.Sprintf(
				"%s. Leave client_id out to get the adopted Client-Id, and enter that in the client; or let the client check in with its own "+
					"Client-Id, admit the client with perch robot adopt --replace, and adopt the robot again", err)}
	case err != nil:
		return Token{}, err
	case robot.BaseURL == "":
		return Token{}, &httpserver.Fault{Word: "no_address", HTTP: http.StatusConflict,
			Sentence: "this robot has not checked in since it was adopted, so the address at which it reaches the appliance is unknown; have it check in first"}
	}
	return Token{Robot: robot.ID, DeviceID: robot.ID.MAC(), ClientID: robot.Client.ID,
		Address: "ws" + strings.TrimPrefix(robot.BaseURL, "http") + "/xiaozhi/v1/", Token: token}, nil
}
