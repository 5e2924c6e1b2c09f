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

// Codes makes robots say login codes. Only robots that their owner has adopted or configured say codes: a robot that was
// adopted automatically after the installation may belong to somebody else.
type Codes struct {
	Registry *device.Registry
	Server   *robot.Server
}

// CanSayCode reports whether any robot may say codes.
func (c Codes) CanSayCode() bool { return slices.ContainsFunc(c.Registry.List(), maySayCodes) }

// maySayCodes reports whether a robot may say codes.
func maySayCodes(r device.Robot) bool { return r.Adopted() && !r.Welcomed }

// SayCode makes one robot say digits. It tries the robots that may say codes, most recently seen first. If all fail, it
// returns the error of the last one, or dialogue.ErrOffline if no robot may say codes.
func (c Codes) SayCode(ctx context.Context, digits string) error {
	list := slices.DeleteFunc(c.Registry.List(), func(r device.Robot) bool { return !maySayCodes(r) })
	slices.SortFunc(list, func(a, b device.Robot) int { return b.LastSeen.Compare(a.LastSeen) })
	var err error = dialogue.ErrOffline
	for _, r := range list {
		err = c.Server.SaySecret(ctx, r.ID, func(tag string) string {
			// Commas, because voices would read the digits as a number.
			return new(language.Catalogue).In(tag).Message("page.code", "code", strings.Join(strings.Split(digits, ""), ", "))
		})
		if err == nil {
			return nil
		}
	}
	return err
}
