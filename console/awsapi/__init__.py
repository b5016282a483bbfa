"""How does an AWS SDK talk to this server?"""
