package llmvtuber

import "github.com/gin-gonic/gin"

// Routes mounts the door. Its locks stand before it.
func (d *Server) Routes(r gin.IRouter) {
	r.GET("/client-ws", func(c *gin.Context) {
		if err := d.programs.Open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}
