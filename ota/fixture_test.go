package ota_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones must be those of every machine

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"perch/device"
	"perch/event"
	"perch/must"
	"perch/ota"
	"perch/store/storetest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

// fixture is a Service with the registry, the bus and the routes that it has in the appliance.
type fixture struct {
	robots  *device.Registry
	events  *event.Reader
	service *ota.Service
	handler http.Handler
	log     *bytes.Buffer
}

func newFixture(t testing.TB, adoption device.Adoption, change ...func(*ota.Options)) *fixture {
	bus := event.NewBus()
	t.Cleanup(bus.Close)
	h := &fixture{robots: device.NewRegistry(device.Key("key"), adoption, &storetest.Table[device.Robot]{}), events: bus.Read(), log: &bytes.Buffer{}}
	o := ota.Options{Robots: h.robots, Bus: bus, Zone: time.UTC, Framing: 1, Log: slog.New(slog.NewTextHandler(h.log, nil))}
	for _, c := range change {
		c(&o)
	}
	h.service = ota.New(o)
	h.handler = serve(h.service)
	return h
}

func serve(s *ota.Service) http.Handler {
	e := gin.New()
	e.Use(render)
	s.Routes(e)
	return e
}

// render responds to errors with their code and status, as the appliance's servers do.
func render(c *gin.Context) {
	c.Next()
	if len(c.Errors) == 0 {
		return
	}
	if e, is := errors.AsType[coded](c.Errors.Last().Err); is {
		c.JSON(e.Status(), gin.H{"error": gin.H{"code": e.Code(), "message": e.Error()}})
	} else {
		c.JSON(http.StatusInternalServerError, gin.H{})
	}
}

// headers returns the headers that a Stack-chan sends.
func headers() http.Header {
	return http.Header{
		"Activation-Version": {"1"},
		"Device-Id":          {"a0:b1:c2:d3:e4:f5"},
		"Client-Id":          {"3f1c8e5a-9b1d-4c7e-8a2f-0d6b5e4c3a21"},
		"User-Agent":         {"m5stack-stack-chan/1.2.4"},
		"Accept-Language":    {"en-US"},
		"Content-Type":       {"application/json"},
	}
}

// whole is the body of a check-in that a Stack-chan sends.
const whole = `{"version":2,"language":"en-US","flash_size":16777216,"minimum_free_heap_size":"8300012",` +
	`"mac_address":"a0:b1:c2:d3:e4:f5","uuid":"3f1c8e5a-9b1d-4c7e-8a2f-0d6b5e4c3a21","chip_model_name":"esp32s3",` +
	`"chip_info":{"model":9,"cores":2,"revision":2,"features":18},` +
	`"application":{"name":"stack-chan","version":"1.2.4","compile_time":"Jun  9 2026T10:11:12Z","idf_version":"v5.5.1","elf_sha256":"` +
	`00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"},` +
	`"partition_table":[{"label":"nvs","type":1,"subtype":2,"address":36864,"size":16384}],"ota":{"label":"ota_0"},` +
	`"display":{"monochrome":false,"width":320,"height":240},` +
	`"board":{"type":"m5stack-stack-chan","name":"m5stack-stack-chan","ssid":"home","rssi":-50,"channel":6,"ip":"192.168.1.40","mac":"a0:b1:c2:d3:e4:f5"}}`

// ask sends a request and returns the response.
func (h *fixture) ask(method, target, host string, header http.Header, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host, r.Header, r.RemoteAddr = host, header, "192.168.1.40:50123"
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

// boot sends a check-in, which must succeed, and returns what the robot stores from the reply.
func (h *fixture) boot(t testing.TB, header http.Header) flash {
	t.Helper()
	return h.checkIn(t, header, whole)
}

// checkIn is like boot, but sends the given body.
func (h *fixture) checkIn(t testing.TB, header http.Header, body string) flash {
	t.Helper()
	return mustRead(t, h.ask(http.MethodPost, "/xiaozhi/ota/", "perch.local:8003", header, body))
}

func mustRead(t testing.TB, w *httptest.ResponseRecorder) flash {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	f, err := readReply(w.Body.Bytes())
	if err != nil {
		t.Fatalf("the robot would not like %s: %v", w.Body, err)
	}
	return f
}

// activate sends the request of a robot that waits to be adopted. The response must have the status want.
func (h *fixture) activate(t testing.TB, query string, header http.Header, want int) {
	t.Helper()
	if w := h.ask(http.MethodPost, "/xiaozhi/ota/activate"+query, "perch:8003", header, "{}"); w.Code != want {
		t.Errorf("activate: %d %s, want %d", w.Code, w.Body, want)
	}
}

// adopt adopts a robot by its code or its ID.
func (h *fixture) adopt(t testing.TB, robot string) {
	t.Helper()
	must.Value(h.robots.Adopt(robot, time.Now()))(t)
}

// seen returns the next event, which must be a RobotSeen.
func (h *fixture) seen(t testing.TB) event.RobotSeen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	e := must.Value(h.events.Next(ctx))(t)
	seen, ok := e.Event.(event.RobotSeen)
	if !ok || e.Robot != "a0b1c2d3e4f5" {
		t.Fatalf("event %s of %s", event.Kind(e.Event), e.Robot)
	}
	return seen
}

// deaf is a bus without readers.
type deaf struct{}

func (deaf) Publish(device.ID, string, event.Event) {}
