package admin

import (
	"net/http"
	"time"

	"perch/gateway/httpserver"
)

// byHand is the body of a request to add a robot whose firmware makes no check-in.
type byHand struct {
	Name string `json:"name"`
}

// addByHand adds a robot, and returns what its owner enters in it.
func (a *API) addByHand(b byHand) (Token, error) {
	address := a.o.RobotURL()
	if address == "" {
		return Token{}, &httpserver.Fault{Word: "no_address", HTTP: http.StatusConflict,
			Sentence: "robots cannot reach this appliance, since it listens on no address of the network; see listen in the configuration"}
	}
	robot, err := a.o.Robots.AddByHand(b.Name, address, time.Now())
	if err != nil {
		return Token{}, err
	}
	return a.issueToken(robot, tokenRequest{})
}
