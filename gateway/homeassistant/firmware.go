package homeassistant

import (
	"context"
	"slices"
	"time"

	"perch/device"
	"perch/event"
)

// catalogue has firmware for robots, and sees to it that they get it. Its
// errors are sentences for the robot's owner.
type catalogue interface {
	// Update is the version that a robot runs and the newest that it could run,
	// which is the same where there is none. Both are empty for a robot that
	// the catalogue has not seen.
	Update(id device.ID) (installed, latest string)
	// Install has a robot offered an image when it next checks in: the one of a
	// SHA-256, or the newest. The path is where it could download it at once,
	// from the appliance's own address.
	Install(id device.ID, sha256 string, now time.Time) (path string, err error)
	// Fetch takes an image for a board into the catalogue from elsewhere, which
	// may take minutes.
	Fetch(ctx context.Context, from, sha256, board string, now time.Time) (version string, err error)
	// Forget drops what is known of a robot.
	Forget(id device.ID) error
}

// update is the state of Home Assistant's MQTT update, which refuses keys that
// it does not know. A version that is not known is left out, for it takes no
// null there.
type update struct {
	Installed  string `json:"installed_version,omitempty"`
	Latest     string `json:"latest_version,omitempty"`
	InProgress bool   `json:"in_progress"`
	Percentage *int   `json:"update_percentage"` // null where nothing is in progress
}

// same reports whether two show the same. All robots are looked at each few seconds, and
// nothing is written to find that out.
func (u update) same(o update) bool {
	percent := func(of *int) int {
		if of == nil {
			return -1
		}
		return *of
	}
	return u.Installed == o.Installed && u.Latest == o.Latest && u.InProgress == o.InProgress && percent(u.Percentage) == percent(o.Percentage)
}

// download is what a robot was last sent of an image.
type download struct {
	percent int
	until   time.Time // when it no longer counts as under way; zero is none
}

// downloadLives is how long after its latest bytes a download counts as under
// way: a robot that has it all writes it, restarts and checks in, which takes
// it less. Home Assistant installs nothing while one is, so a robot that was
// switched off in the middle must not leave it so.
const downloadLives = 2 * time.Minute

// installWithin is how long the answer to the robot's own tool is waited for.
const installWithin = time.Minute

// upgradeTool is the firmware's own, by which it installs what it is given.
const upgradeTool = "self.upgrade_firmware"

// upgrade brings in an event about a robot's firmware. A check-in ends a download:
// the version that the robot came back with shows whether it succeeded.
func (h *hub) upgrade(v *view, e event.Envelope) {
	switch ev := e.Event.(type) {
	case event.FirmwareProgress:
		if ev.Size <= 0 {
			return
		}
		v.download = download{int(100 * min(max(ev.Bytes, 0), ev.Size) / ev.Size), e.At.Add(downloadLives)}
	case event.FirmwareInstalled:
		v.download = download{}
		h.installed(v, event.Command{State: event.CommandDone})
	case event.FirmwareFailed:
		v.download = download{}
		h.installed(v, event.Command{State: event.CommandRejected, Reason: device.Clip(ev.Why, 300)})
	case event.RobotSeen:
		if ev.Waiting {
			return // it is another client that names itself by the robot's MAC
		}
		v.download = download{}
	case event.FirmwareOffered, event.FirmwareRolledBack:
		v.download = download{}
	default:
		return
	}
	h.showUpdate(v, e.At)
}

// installed publishes the end of an installation that waited for the robot.
func (h *hub) installed(v *view, c event.Command) {
	if !v.installing {
		return
	}
	v.installing = false
	c.Thing = "firmware"
	h.o.Bus.Publish(v.robot.ID, "", c)
}

// showUpdate publishes what a robot runs and could run, where that has changed.
func (h *hub) showUpdate(v *view, now time.Time) {
	if !v.download.until.After(now) {
		v.download = download{}
	}
	u := h.update(v)
	if v.update != nil && u.same(*v.update) {
		return
	}
	v.update = &u
	h.putJSON(h.names.robotTopic(v.robot.ID, "firmware"), u, true, 1)
}

// update is what there is to show. The catalogue learns of a check-in after the
// registry, so where they differ what it has to offer is not known yet.
func (h *hub) update(v *view) update {
	u := update{Installed: v.robot.Firmware, Latest: v.robot.Firmware}
	if installed, latest := h.o.Firmware.Update(v.robot.ID); installed == u.Installed {
		u.Latest = latest
	}
	if !v.download.until.IsZero() {
		u.InProgress, u.Percentage = true, new(v.download.percent)
	}
	return u
}

// do has a robot install the newest image: at once where its channel is
// open and its firmware has a tool for that, else it is queued until the robot
// next checks in.
func (install) do(ctx context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	path, err := h.o.Firmware.Install(id, "", time.Now())
	if err != nil {
		return nil, err
	}
	robot, err := h.o.Robots.Get(id)
	if err != nil {
		return nil, err
	}
	queued := robot.BaseURL == "" || !h.o.Board.Robot(id).Online ||
		!slices.ContainsFunc(h.o.Talk.Tools(id), func(t device.Tool) bool { return t.Name == upgradeTool })
	if !queued {
		ctx, cancel := context.WithTimeout(ctx, installWithin)
		defer cancel()
		// The robot may go quiet instead of answering; the version it comes back with shows the end.
		_, err := h.o.Talk.Call(ctx, id, upgradeTool, map[string]any{"url": robot.BaseURL + path})
		queued = err != nil
	}
	return func(_ context.Context, v *view) {
		if v.installing = queued; queued {
			h.o.Bus.Publish(id, "", event.Command{Thing: "firmware", State: event.CommandQueued})
		}
	}, nil
}
