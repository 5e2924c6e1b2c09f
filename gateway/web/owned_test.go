package web_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serveOwned mounts a door of the owner's, and a stream.
func serveOwned(owned gin.IRouter) {
	owned.GET("/owned", func(c *gin.Context) { c.Status(http.StatusOK) })
	owned.POST("/owned", func(c *gin.Context) { c.Status(http.StatusOK) })
	owned.GET("/stream", func(c *gin.Context) {
		c.Writer.Flush()
		<-c.Request.Context().Done()
	})
}
