package admin

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/ota"
)

// uploadStalls is the longest pause in an upload or download.
const uploadStalls = 30 * time.Second

// steadyReader is a request body of any length that fails when it stalls.
type steadyReader struct {
	io.Reader
	control *http.ResponseController
	begun   bool
}

func (s *steadyReader) Read(p []byte) (int, error) {
	s.begun = true
	_ = s.control.SetReadDeadline(time.Now().Add(uploadStalls)) // without deadlines it is no network
	return s.Reader.Read(p)
}

// receiveUpload reads an upload by work. After an error it reads on, since the sender is busy writing and would
// see a reset instead of the answer; but a client that sent Expect: 100-continue and was refused has sent nothing.
func receiveUpload[T any](w http.ResponseWriter, r *http.Request, work func(body io.Reader) (T, error)) (T, error) {
	body := &steadyReader{Reader: r.Body, control: http.NewResponseController(w)}
	result, err := work(body)
	if err != nil && (body.begun || r.Header.Get("Expect") == "") {
		_, _ = io.CopyN(io.Discard, body, limit.Drained)
	}
	return result, err
}

// publish adds an image to the catalogue: the body is the file, the query has the rest.
func (a *API) publish(ctx context.Context, body io.Reader, q url.Values) (ota.Shown, error) {
	return a.o.Firmware.Add(ctx, body, ota.Upload{Boards: q["board"], SHA256: q.Get("sha256"), Signature: q.Get("signature")}, time.Now())
}

func (a *API) rollOut(sha string, body []byte) (ota.Shown, error) {
	plan, err := ota.ParseRollout(body, a.o.Robots.Resolve)
	if err != nil {
		return ota.Shown{}, err
	}
	return a.o.Firmware.Plan(sha, plan)
}

// upgrade is the body of upgrade; without it the newest image is meant.
type upgrade struct {
	SHA256 string `json:"sha256"`
}

// upgradeTool is the firmware's own tool that installs an image.
const upgradeTool = "self.upgrade_firmware"

// upgrade has a robot install an image: at once if its channel is open and
// its firmware has a tool for that, else when it next checks in.
func (a *API) upgrade(ctx context.Context, r device.Robot, u upgrade) (Taken, error) {
	path, err := a.o.Firmware.Install(r.ID, u.SHA256, time.Now())
	if err != nil {
		return Taken{}, err
	}
	_, can := device.FindTool(a.o.Talk.Tools(r.ID), upgradeTool)
	if !can || !a.o.Board.Robot(r.ID).Online || r.BaseURL == "" {
		return Taken{OK: true, Queued: true}, nil
	}
	// The robot may not answer; its next check-in then shows whether it installed the image.
	ctx, cancel := context.WithTimeoutCause(ctx, toolWithin, errToolTimeout)
	defer cancel()
	_, err = a.o.Talk.Call(ctx, r.ID, upgradeTool, map[string]any{"url": r.BaseURL + path})
	return Taken{OK: true, Queued: err != nil}, nil
}

// assetChoice is the body that points a robot at an asset file.
type assetChoice struct {
	Name string `json:"name"`
}

// assetsTool is the firmware's own tool that sets the address of its assets. It fetches them when it next starts.
const assetsTool = "self.assets.set_download_url"

// pointAtAssets sends a robot the address of an asset file. The robot's channel must be open: an address that it
// receives later may be of a file that is gone by then.
func (a *API) pointAtAssets(ctx context.Context, r device.Robot, choice assetChoice) (Result, error) {
	path, err := a.o.Firmware.AssetFor(r.ID, choice.Name, time.Now())
	if err != nil {
		return Result{}, err
	}
	if r.BaseURL == "" {
		return Result{}, &httpserver.Fault{Word: "no_address",
			Sentence: "it is not known at which address this robot reaches the appliance; restart the robot", HTTP: http.StatusConflict}
	}
	return a.call(ctx, r.ID, assetsTool, call{Arguments: map[string]any{"url": r.BaseURL + path}})
}
