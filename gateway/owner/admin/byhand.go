package admin

import "time"

// byHand is the body of a request to add a robot whose firmware makes no check-in.
type byHand struct {
	Name string `json:"name"`
}

// addByHand adds a robot, and returns the data that the owner enters in the robot.
func (a *API) addByHand(b byHand) (Token, error) {
	robot, err := a.o.Robots.AddByHand(b.Name, a.o.RobotURL(), time.Now())
	if err != nil {
		return Token{}, err
	}
	return a.issueToken(robot, tokenRequest{})
}
