package web_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"perch/cmd/perch/appliancetest"
)

func TestMain(m *testing.M) {
	appliancetest.RunChildProcess()
	goleak.VerifyTestMain(m)
}

// serveOwned mounts routes that need the owner: a simple one, an upload, a stream, a WebSocket and some real paths.
func serveOwned(owned gin.IRouter) {
	owned.GET("/owned", func(c *gin.Context) { c.Status(http.StatusOK) })
	owned.POST("/owned", func(c *gin.Context) { c.Status(http.StatusOK) })
	owned.GET("/socket", func(c *gin.Context) { // like the handler of a WebSocket, it returns while the connection stays open
		conn, _, err := c.Writer.Hijack()
		if err == nil {
			_, err = io.WriteString(conn, "open\n")
		}
		if err != nil {
			panic(err)
		}
	})
	owned.POST("/upload", func(c *gin.Context) {
		err := http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(5 * time.Minute))
		if err == nil {
			_, err = io.ReadAll(c.Request.Body)
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.Status(http.StatusOK)
	})
	for _, path := range []string{"/admin/say", "/xiaozhi/admin/say", "/api/agents/leo", "/v1/chat/completions", "/xiaozhi/ota/",
		"/xiaozhi/vision/explain"} {
		owned.POST(path, func(c *gin.Context) { c.Status(http.StatusOK) })
	}
	owned.GET("/stream", func(c *gin.Context) {
		c.Writer.Flush()
		<-c.Request.Context().Done()
	})
}
