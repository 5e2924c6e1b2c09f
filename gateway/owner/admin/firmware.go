package admin

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"perch/device"
	"perch/limit"
	"perch/ota"
)

// firmware is the catalogue of images. Its errors say themselves how they are
// shown.
type firmware interface {
	List() []ota.Shown
	Add(ctx context.Context, body io.Reader, u ota.Upload, now time.Time) (ota.Shown, error)
	Plan(sha string, plan ota.Rollout) (ota.Shown, error)
	Remove(sha string) error
	Update(id device.ID) ota.Update
	Forget(id device.ID) error
	// Install has a robot offered an image when it next checks in. The path is
	// where it could download it at once.
	Install(id device.ID, sha string, now time.Time) (path string, err error)

	Assets() ([]ota.Asset, error)
	AddAsset(ctx context.Context, name string, body io.Reader) (ota.Asset, error)
	RemoveAsset(name string) error
	AssetFor(id device.ID, name string, now time.Time) (path string, err error)
}

// uploadStalls is how long nothing of an image may arrive.
const uploadStalls = 30 * time.Second

// steady is a request body of any length that fails when it stalls.
type steady struct {
	io.Reader
	control *http.ResponseController
	begun   bool
}

func (s *steady) Read(p []byte) (int, error) {
	s.begun = true
	_ = s.control.SetReadDeadline(time.Now().Add(uploadStalls)) // what has no deadlines is no network
	return s.Reader.Read(p)
}

// receiveUpload has an upload taken. One that is refused before its end is read on: its
// sender is busy writing, and would see a reset instead of the answer. Who has
// asked first whether to send it, and got no consent, has sent nothing.
func receiveUpload[T any](w http.ResponseWriter, r *http.Request, to func(body io.Reader) (T, error)) (T, error) {
	body := &steady{Reader: r.Body, control: http.NewResponseController(w)}
	taken, err := to(body)
	if err != nil && (body.begun || r.Header.Get("Expect") == "") {
		_, _ = io.CopyN(io.Discard, body, limit.Drained)
	}
	return taken, err
}

// publish takes an image into the catalogue: the body is the file, the query
// has the rest.
func (d *API) publish(ctx context.Context, body io.Reader, q url.Values) (ota.Shown, error) {
	return d.o.Firmware.Add(ctx, body, ota.Upload{Boards: q["board"], SHA256: q.Get("sha256"), Signature: q.Get("signature")}, time.Now())
}

func (d *API) rollOut(sha string, body []byte) (ota.Shown, error) {
	plan, err := ota.ParseRollout(body, d.o.Robots.Resolve)
	if err != nil {
		return ota.Shown{}, err
	}
	return d.o.Firmware.Plan(sha, plan)
}

// upgrade is the body of upgrade; none is the newest image there is.
type upgrade struct {
	SHA256 string `json:"sha256"`
}

// upgradeTool is the firmware's own, by which it installs what it is given.
const upgradeTool = "self.upgrade_firmware"

// upgrade has a robot install an image: at once where its channel is open and
// its firmware has a tool for that, else when it next checks in.
func (d *API) upgrade(ctx context.Context, r device.Robot, u upgrade) (Taken, error) {
	path, err := d.o.Firmware.Install(r.ID, u.SHA256, time.Now())
	if err != nil {
		return Taken{}, err
	}
	_, can := device.FindTool(d.o.Talk.Tools(r.ID), upgradeTool)
	if !can || !d.o.Board.Robot(r.ID).Online || r.BaseURL == "" {
		return Taken{OK: true, Queued: true}, nil
	}
	// The robot answers before it begins, if it does: it may also go quiet, and
	// its next check-in then shows which.
	ctx, cancel := context.WithTimeoutCause(ctx, toolWithin, errToolTimeout)
	defer cancel()
	_, err = d.o.Talk.Call(ctx, r.ID, upgradeTool, map[string]any{"url": r.BaseURL + path})
	return Taken{OK: true, Queued: err != nil}, nil
}
