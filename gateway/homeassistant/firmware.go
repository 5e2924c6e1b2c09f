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

// installed ends a download, and publishes the end of an installation that waited for the
// robot. The version that the robot comes back with shows whether it succeeded.
func (h *hub) installed(v *view, now time.Time, c event.Command) {
	if v.installing {
		v.installing, c.Thing = false, "firmware"
		h.o.Bus.Publish(v.robot.ID, "", c)
	}
	h.endDownload(v, now)
}

// endDownload ends a download, if there is one.
func (h *hub) endDownload(v *view, now time.Time) {
	v.download = download{}
	h.showUpdate(v, now)
}

// showUpdate publishes what a robot runs and could run.
func (h *hub) showUpdate(v *view, now time.Time) {
	if !v.download.until.After(now) {
		v.download = download{}
	}
	h.putJSON(h.names.Robot(v.robot.ID, "firmware"), h.update(v), true, 1)
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
