package robots

import (
	"context"
	"slices"
	"strings"

	"perch/device"
	"perch/gateway/robot"
	"perch/gateway/robot/dialogue"
	"perch/language"
)

// Codes has robots say the codes that let a browser in. Only robots that their owner has adopted or configured say
// codes: a robot that was adopted automatically after the installation may be anybody's.
type Codes struct {
	Registry *device.Registry
	Server   *robot.Server
}

// CanSayCode reports whether there is a robot that may say codes.
func (c Codes) CanSayCode() bool { return slices.ContainsFunc(c.Registry.List(), maySayCodes) }

func maySayCodes(r device.Robot) bool { return r.Adopted() && !r.Welcomed }

// SayCode has the robot that was used last, of those that listen, say digits. It returns the error of the last robot
// that could not, or dialogue.ErrOffline if none listens.
func (c Codes) SayCode(ctx context.Context, digits string) error {
	list := slices.DeleteFunc(c.Registry.List(), func(r device.Robot) bool { return !maySayCodes(r) })
	slices.SortFunc(list, func(a, b device.Robot) int { return b.LastSeen.Compare(a.LastSeen) })
	var err error = dialogue.ErrOffline
	for _, r := range list {
		err = c.Server.SaySecret(ctx, r.ID, func(tag string) string {
			// One by one, or voices read them as a number.
			return new(language.Catalogue).In(tag).Message("page.code", "code", strings.Join(strings.Split(digits, ""), ", "))
		})
		if err == nil {
			return nil
		}
	}
	return err
}
