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

// stallTimeout is the maximum pause in an upload or download.
const stallTimeout = 30 * time.Second

// steadyReader reads a request body of any length. A read fails if nothing has arrived for stallTimeout.
type steadyReader struct {
	io.Reader
	control *http.ResponseController
	begun   bool // Read was called
}

// Read implements io.Reader.
func (s *steadyReader) Read(p []byte) (int, error) {
	s.begun = true
	_ = s.control.SetReadDeadline(time.Now().Add(stallTimeout)) // fails only if this is not a network connection
	return s.Reader.Read(p)
}

// receiveUpload calls work with the body of an upload. After an error it discards the rest of the body, up to
// limit.Drained bytes: the client is still sending, and would see a connection reset instead of the response. There is
// nothing to discard if the client has sent "Expect: 100-continue" and work has not read the body.
func receiveUpload[T any](w http.ResponseWriter, r *http.Request, work func(body io.Reader) (T, error)) (T, error) {
	body := &steadyReader{Reader: r.Body, control: http.NewResponseController(w)}
	result, err := work(body)
	if err != nil && (body.begun || r.Header.Get("Expect") == "") {
		_, _ = io.CopyN(io.Discard, body, limit.Drained)
	}
	return result, err
}

// addFirmware adds an image to the catalogue. The body is the file; the query has the boards, the SHA-256 and the
// signature.
func (a *API) addFirmware(ctx context.Context, body io.Reader, q url.Values) (ota.Shown, error) {
	return a.o.Firmware.Add(ctx, body, ota.Upload{Boards: q["board"], SHA256: q.Get("sha256"), Signature: q.Get("signature")}, time.Now())
}

// rollOut sets the rollout plan of an image.
func (a *API) rollOut(sha string, body []byte) (ota.Shown, error) {
	plan, err := ota.ParseRollout(body, a.o.Robots.Resolve)
	if err != nil {
		return ota.Shown{}, err
	}
	return a.o.Firmware.Plan(sha, plan)
}

// upgrade is the body of a request to upgrade a robot.
type upgrade struct {
	SHA256 string `json:"sha256"` // empty for the newest image
}

// upgradeTool is the robot's tool that installs a firmware image.
const upgradeTool = "self.upgrade_firmware"

// upgradeRobot makes a robot install an image: at once if the robot is connected, has upgradeTool and has checked in
// with a known address of the appliance, and otherwise when it checks in next.
func (a *API) upgradeRobot(ctx context.Context, r device.Robot, u upgrade) (Accepted, error) {
	path, err := a.o.Firmware.Install(r.ID, u.SHA256, time.Now())
	if err != nil {
		return Accepted{}, err
	}
	_, found := device.FindTool(a.o.Talk.Tools(r.ID), upgradeTool)
	if !found || !a.o.Board.Robot(r.ID).Online || r.BaseURL == "" {
		return Accepted{OK: true, Queued: true}, nil
	}
	// A robot that restarts does not return a result. Its next check-in shows whether it has installed the image.
	ctx, cancel := context.WithTimeoutCause(ctx, toolTimeout, errToolTimeout)
	defer cancel()
	_, err = a.o.Talk.Call(ctx, r.ID, upgradeTool, map[string]any{"url": r.BaseURL + path})
	return Accepted{OK: true, Queued: err != nil}, nil
}

// assetChoice is the body of a request to make a robot use an asset file.
type assetChoice struct {
	Name string `json:"name"`
}

// assetsTool is the robot's tool that sets the URL of its assets, which the robot downloads when it starts next.
const assetsTool = "self.assets.set_download_url"

// pointAtAssets sends a connected robot the URL of an asset file. The URL is not stored for an offline robot,
// because the file may have been deleted when the robot connects.
func (a *API) pointAtAssets(ctx context.Context, r device.Robot, choice assetChoice) (Result, error) {
	path, err := a.o.Firmware.AssetFor(r.ID, choice.Name, time.Now())
	if err != nil {
		return Result{}, err
	}
	if r.BaseURL == "" {
		return Result{}, &httpserver.Fault{Word: "no_address",
			Sentence: "the address at which this robot reaches the appliance is unknown; restart the robot", HTTP: http.StatusConflict}
	}
	return a.callTool(ctx, r.ID, assetsTool, call{Arguments: map[string]any{"url": r.BaseURL + path}})
}
